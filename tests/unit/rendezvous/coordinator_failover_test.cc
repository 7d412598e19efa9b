// A job goes on under another leader.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "coordinator_harness.h"
#include "rendezvous/job_state.h"

namespace lrun::launcher {
namespace {

using test::CoordinatorHarness;
using test::node_at;
using Kind = LauncherMessage::Kind;

std::string token_of(int host) { return "token of 10.0.0." + std::to_string(host); }

/// A rendezvous that goes on after round 3 of nodes 1 to `nodes`, which the first one led.
CoordinatorHarness resumed(int least, int most, int nodes) {
  CoordinatorHarness harness(least, most);
  JobState state{.round = 3, .attempt = 1, .history = "so far", .leader = token_of(1)};
  for (int host = 1; host <= nodes; ++host) state.members.push_back(token_of(host));
  harness.coordinator.resume(state, std::nullopt, harness.now);
  return harness;
}

void come_back(CoordinatorHarness& harness, int host, int round, int least, int most) {
  JoinRecord record = node_at("10.0.0." + std::to_string(host));
  record.min_nodes = least;
  record.max_nodes = most;
  harness.coordinator.received(static_cast<ConnectionId>(host),
                               {.kind = Kind::kJoin, .round = round, .resumes = true, .join = record}, harness.now);
}

/// One that had no place in the last round.
void come_again(CoordinatorHarness& harness, int host, int least, int most) {
  JoinRecord record = node_at("10.0.0." + std::to_string(host));
  record.min_nodes = least;
  record.max_nodes = most;
  harness.coordinator.received(static_cast<ConnectionId>(host),
                               {.kind = Kind::kJoin, .was_spare = true, .join = record}, harness.now);
}

void be_ready(CoordinatorHarness& harness, int host, int round, int attempt = 1) {
  harness.coordinator.received(
      static_cast<ConnectionId>(host),
      {.kind = Kind::kReady, .round = round, .text = "told", .attempt = attempt, .port = 5000 + host}, harness.now);
}

TEST(CoordinatorFailover, BeginsTheNextRoundWhenAllAreBackAndReady) {
  CoordinatorHarness harness = resumed(2, 3, 3);
  come_back(harness, 2, 3, 2, 3);
  come_back(harness, 3, 3, 2, 3);
  harness.pass(Duration(1500));
  EXPECT_EQ(harness.said(), "") << "their workers are being stopped";
  be_ready(harness, 2, 4);
  be_ready(harness, 3, 4, 2);
  EXPECT_EQ(harness.said(), "begin>2 begin>3");
  const Membership& membership = *harness.sent.front().message.membership;
  EXPECT_EQ(membership.round, 4);
  EXPECT_EQ(membership.attempt, 2) << "whoever knows of more restarts is believed";
  EXPECT_EQ(membership.history, "told");
  EXPECT_EQ(membership.master_port, 5002);
  const JobState state = harness.coordinator.state();
  EXPECT_EQ(state.round, 4);
  EXPECT_EQ(state.members, (std::vector<std::string>{token_of(2), token_of(3)}));
}

TEST(CoordinatorFailover, WaitsAHeartbeatForThoseThatDoNotComeBack) {
  CoordinatorHarness harness = resumed(1, 3, 3);
  come_back(harness, 2, 3, 1, 3);
  be_ready(harness, 2, 4);
  harness.pass(Duration(4900));
  EXPECT_EQ(harness.said(), "");
  EXPECT_EQ(harness.coordinator.deadline(), harness.now + Duration(100));
  harness.pass(Duration(100));
  EXPECT_EQ(harness.said(), "begin>2");
}

TEST(CoordinatorFailover, GoesOnWithSparesAloneAndTheSameBudget) {
  CoordinatorHarness harness = resumed(1, 1, 1);
  come_again(harness, 5, 1, 1);
  EXPECT_EQ(harness.said(), "spare>5");
  harness.pass(Duration(5000));
  EXPECT_EQ(harness.said(), "begin>5");
  EXPECT_EQ(harness.sent.front().message.membership->round, 4);
  EXPECT_EQ(harness.sent.front().message.membership->attempt, 1);
  EXPECT_EQ(harness.sent.front().message.membership->history, "so far");
}

TEST(CoordinatorFailover, BeginsAnewWhereNobodyOfTheJobComesBack) {
  CoordinatorHarness harness(2, 2);
  harness.coordinator.resume({.round = 3, .attempt = 1, .history = "so far", .leader = "a", .members = {"a", "b"}},
                             std::nullopt, harness.now);
  harness.join(1, node_at("10.0.0.1"));
  harness.pass(Duration(4900));
  EXPECT_EQ(harness.said(), "") << "one of the job may still come";
  EXPECT_EQ(harness.coordinator.deadline(), harness.now + Duration(100));
  harness.pass(Duration(100));
  EXPECT_EQ(harness.said(), "") << "it meets as every job does";
  harness.join(2, node_at("10.0.0.2"));
  EXPECT_EQ(harness.said(), "begin>1 begin>2");
  const Membership& membership = *harness.sent.front().message.membership;
  EXPECT_EQ(membership.round, 0);
  EXPECT_EQ(membership.attempt, 0);
  EXPECT_EQ(membership.history, "");
}

TEST(CoordinatorFailover, GivesUpANewJobThatDoesNotMeet) {
  CoordinatorHarness harness = resumed(2, 2, 1);
  harness.join(5, node_at("10.0.0.5"));
  harness.pass(Duration(5000));
  harness.pass(Duration(54'900));
  EXPECT_EQ(harness.said(), "waiting>5");
  harness.pass(Duration(100));
  EXPECT_EQ(harness.said(), "refused>5");
}

TEST(CoordinatorFailover, KnowsAMemberThatHasNotHeardOfItsRound) {
  CoordinatorHarness harness = resumed(2, 2, 2);
  harness.join(5, node_at("10.0.0.5"));
  EXPECT_EQ(harness.said(), "");
  harness.join(2, node_at("10.0.0.2"));
  EXPECT_EQ(harness.said(), "spare>5 spare>2 begin>2 begin>5");
  EXPECT_EQ(harness.sent.back().message.membership->attempt, 1);
}

TEST(CoordinatorFailover, KeepsMessagesThatComeBeforeTheLeadersOwnLauncher) {
  CoordinatorHarness harness(2, 2);
  harness.led_by(token_of(2));
  harness.coordinator.resume({.round = 3, .leader = token_of(1), .members = {token_of(2), token_of(3)}}, std::nullopt,
                             harness.now);
  come_back(harness, 3, 3, 2, 2);
  be_ready(harness, 3, 4);
  come_back(harness, 2, 3, 2, 2);
  be_ready(harness, 2, 4);
  EXPECT_EQ(harness.said(), "begin>2 begin>3");
}

TEST(CoordinatorFailover, BelievesThoseThatHaveSeenALaterRound) {
  CoordinatorHarness harness = resumed(2, 2, 2);
  come_back(harness, 2, 3, 2, 2);
  be_ready(harness, 2, 4);
  come_back(harness, 3, 4, 2, 2);
  be_ready(harness, 3, 5);
  harness.pass(Duration(1000));
  EXPECT_EQ(harness.said(), "begin>2 begin>3");
  EXPECT_EQ(harness.sent.front().message.membership->round, 5);
}

TEST(CoordinatorFailover, NeedsNoStateWhereOneComesBack) {
  CoordinatorHarness harness(2, 3);
  come_back(harness, 2, 7, 2, 3);
  come_back(harness, 3, 7, 2, 3);
  be_ready(harness, 2, 8);
  be_ready(harness, 3, 8);
  harness.pass(Duration(4000));
  EXPECT_EQ(harness.said(), "") << "nobody knows who else will come";
  harness.pass(Duration(1000));
  EXPECT_EQ(harness.said(), "begin>2 begin>3");
  EXPECT_EQ(harness.sent.front().message.membership->round, 8);
}

/// Its job was over, and another has its name.
TEST(CoordinatorFailover, TakesNobodyIntoANewJob) {
  CoordinatorHarness harness(2, 2);
  harness.join(1, node_at("10.0.0.1"));
  come_back(harness, 2, 3, 2, 2);
  EXPECT_EQ(harness.said(), "refused>2");
  EXPECT_EQ(harness.sent.back().message.text, "a new job of the same name has started");
  harness.join(3, node_at("10.0.0.3"));
  EXPECT_EQ(harness.said(), "begin>1 begin>3");
  EXPECT_EQ(harness.sent.front().message.membership->round, 0);
}

/// It has nothing more to do than to say so, and may have gone before the leader's own launcher has come.
TEST(CoordinatorFailover, EndsWhereOneThatComesBackSaysThatNoRoundFollows) {
  for (const bool is_early : {false, true}) {
    CoordinatorHarness harness(2, 3);
    harness.led_by(token_of(2));
    harness.coordinator.resume({.round = 3, .leader = token_of(1), .members = {token_of(2), token_of(3)}}, std::nullopt,
                               harness.now);
    const auto come = [&] {
      come_back(harness, 2, 3, 2, 3);
      be_ready(harness, 2, 4);
    };
    if (!is_early) come();
    come_back(harness, 3, 3, 2, 3);
    harness.say(3, Kind::kLeave, 3, "it was interrupted");
    harness.lose(3, "its launcher ended");
    if (is_early) come();
    EXPECT_EQ(harness.said(), "ended>2") << is_early;
    harness.pass(Duration(10'000));
    EXPECT_EQ(harness.said(), "") << "no round begins";
  }
}

TEST(CoordinatorFailover, IsNoMatterOfAMeetingThatLives) {
  CoordinatorHarness harness(2, 3);
  harness.join(1, node_at("10.0.0.1"));
  harness.join(2, node_at("10.0.0.2"));
  harness.pass(Duration(1000));
  EXPECT_EQ(harness.said(), "begin>1 begin>2");
  come_back(harness, 3, 0, 2, 3);
  EXPECT_EQ(harness.said(), "spare>3");
  harness.pass(Duration(2000));
  EXPECT_EQ(harness.said(), "") << "its workers are being stopped";
  be_ready(harness, 3, 1);
  EXPECT_EQ(harness.said(), "resize>1 resize>2");
}

/// Launchers of one job and its leader, which dies again and again. The state that it left behind is that of its last
/// round, or of the one before.
class LeaderLosses {
 public:
  explicit LeaderLosses(unsigned seed) : random_(seed) {
    most_ = draw(2, 5);
    least_ = draw(1, most_);
    const int nodes = draw(most_, most_ + 2) + draw(0, 2);
    for (int host = 1; host <= nodes; ++host) launchers_[host] = {};
    open(1, std::nullopt);
  }

  void run() {
    while (static_cast<int>(launchers_.size()) >= least_ && !launchers_.empty()) {
      for (int step = 0; step < 400 && !all_run(); ++step) pass_some_time();
      ASSERT_TRUE(all_run()) << "the job does not go on; " << harness_->coordinator.who_is_there();
      check();
      kill_leader();
    }
  }

 private:
  struct Launcher {
    std::optional<Membership> membership;
    bool spare = false;
  };

  int draw(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }

  [[nodiscard]] bool all_run() const {
    std::size_t running = 0;
    for (const auto& [host, launcher] : launchers_) {
      if (launcher.membership && launcher.membership->round > last_round_) ++running;
    }
    return running == std::min(launchers_.size(), static_cast<std::size_t>(most_));
  }

  void open(int leader, const std::optional<JobState>& state) {
    leader_ = leader;
    harness_.emplace(least_, most_);
    harness_->now += Duration(draw(0, 1000));
    if (state) harness_->coordinator.resume(*state, std::nullopt, harness_->now);
    joins_left_.clear();
    for (const auto& [host, launcher] : launchers_) joins_left_.push_back(host);
    std::shuffle(joins_left_.begin(), joins_left_.end(), random_);
  }

  /// One launcher finds the leader, or one is ready, or neither.
  void pass_some_time() {
    if (!joins_left_.empty() && draw(0, 2) == 0) {
      const int host = joins_left_.back();
      joins_left_.pop_back();
      const auto& membership = launchers_[host].membership;
      if (membership) {
        come_back(*harness_, host, membership->round, least_, most_);
      } else if (launchers_[host].spare) {
        come_again(*harness_, host, least_, most_);
      } else {
        harness_->join(static_cast<ConnectionId>(host), node_at("10.0.0." + std::to_string(host)));
      }
      joined_.push_back(host);
    } else if (!joined_.empty() && draw(0, 1) == 0) {
      const int host = joined_.back();
      joined_.pop_back();
      if (launchers_[host].membership) be_ready(*harness_, host, launchers_[host].membership->round + 1, attempt_);
    }
    harness_->pass(Duration(draw(0, 400)));
    deliver();
  }

  /// A round that costs nothing stops at once: newcomers have come.
  void deliver() {
    for (const test::Told& send : test::one_by_one(harness_->coordinator.outbox().take_messages())) {
      const int host = static_cast<int>(send.to);
      if (send.message.kind == Kind::kBegin) {
        launchers_[host].membership = send.message.membership;
        before_last_ = std::exchange(last_, harness_->coordinator.state());
      }
      if (send.message.kind == Kind::kSpare) launchers_[host].spare = true;
      if (send.message.kind == Kind::kResize) {
        harness_->say(send.to, Kind::kReport, send.message.round);
        resized_.push_back(host);
      }
      EXPECT_NE(send.message.kind, Kind::kRejected) << send.message.text;
      EXPECT_NE(send.message.kind, Kind::kEnded) << send.message.text;
    }
    for (const int host : std::exchange(resized_, {})) {
      be_ready(*harness_, host, launchers_[host].membership->round + 1, attempt_);
    }
  }

  void check() const {
    std::map<int, int> sizes;
    int newest = 0;
    for (const auto& [host, launcher] : launchers_) {
      if (launcher.membership) newest = std::max(newest, launcher.membership->round);
    }
    for (const auto& [host, launcher] : launchers_) {
      if (!launcher.membership || launcher.membership->round != newest) continue;
      ++sizes[newest];
      EXPECT_EQ(launcher.membership->attempt, attempt_) << "the budget is that of the job, whoever holds its meeting";
    }
    EXPECT_GT(newest, last_round_);
    EXPECT_GE(sizes[newest], least_);
    EXPECT_LE(sizes[newest], most_);
  }

  /// Its state may be older than the round by one; those that are left know better.
  void kill_leader() {
    for (const auto& [host, launcher] : launchers_) {
      if (launcher.membership) last_round_ = std::max(last_round_, launcher.membership->round);
    }
    launchers_.erase(leader_);
    if (launchers_.empty()) return;
    JobState state = draw(0, 3) == 0 && before_last_.round > 0 ? before_last_ : last_;
    state.leader = token_of(leader_);
    // With launchers alone that had not come to the job before, it is another.
    if (std::none_of(launchers_.begin(), launchers_.end(),
                     [](const auto& entry) { return entry.second.membership || entry.second.spare; })) {
      last_round_ = -1;
    }
    joined_.clear();
    const auto next = std::next(launchers_.begin(), draw(0, static_cast<int>(launchers_.size()) - 1));
    open(next->first, state);
  }

  std::mt19937 random_;
  int least_ = 1;
  int most_ = 1;
  int attempt_ = 0;
  int leader_ = 1;
  int last_round_ = -1;
  std::map<int, Launcher> launchers_;
  std::optional<CoordinatorHarness> harness_;
  std::vector<int> joins_left_;
  std::vector<int> joined_;
  std::vector<int> resized_;
  JobState last_;
  JobState before_last_;
};

TEST(CoordinatorFailover, GoesOnHoweverOftenAndWheneverTheLeaderIsLost) {
  for (unsigned seed = 0; seed < 500 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    LeaderLosses(seed).run();
  }
}

}  // namespace
}  // namespace lrun::launcher
