// A launcher that finds its leader through an etcd that the test plays.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "coordinator_harness.h"
#include "rendezvous/job.h"
#include "store/base64.h"
#include "support/fake_etcd.h"
#include "support/patience.h"

namespace lrun::launcher {
namespace {

using test::FakeEtcd;
using test::node_at;

using test::kPatience;

/// One launcher, and leaders that seem to be on another machine, of a job of one node. etcd has the key of the last
/// one, also when it is gone.
class JobInEtcd : public ::testing::Test, protected JobEvents {
 protected:
  void open_rendezvous(Duration heartbeat = kPatience) {
    server_ = std::make_unique<RendezvousServer>(
        loop_, RendezvousServer::Options{.reach = StoreReach::kLoopback,
                                         .times = {.join = kPatience, .last_call = Duration(1), .heartbeat = heartbeat},
                                         .merge = test::joined});
    port_ = server_->server().port();
  }

  [[nodiscard]] std::string answer(const std::string& request) {
    if (request.starts_with("POST /v3/lease/grant")) {
      return FakeEtcd::response(R"({"header":{},"ID":"7","TTL":")" + seconds_ + R"("})");
    }
    if (request.starts_with("POST /v3/lease/keepalive")) {
      return FakeEtcd::response(R"({"result":{"header":{},"ID":"7","TTL":"60"}})");
    }
    if (request.starts_with("POST /v3/lease/revoke")) on_revoked_();
    if (request.starts_with("POST /v3/kv/txn") && request.find("request_put") != std::string::npos)
      return vote(request);
    if (request.starts_with("POST /v3/kv/range") && !own_.empty() && !is_taken_away_) {
      return FakeEtcd::response(R"({"header":{},"kvs":[{"value":")" + own_ + R"(","create_revision":"5"}]})");
    }
    if (!request.starts_with("POST /v3/kv/range") || nobody_leads_) return FakeEtcd::response(R"({"header":{}})");
    ++looked_;
    const std::string record = to_json(LeaderRecord{"other", "there", "127.0.0.1", port_});
    return FakeEtcd::response(R"({"kvs":[{"value":")" + to_base64(record) + R"(","create_revision":"3"}]})");
  }

  /// It is won, and the state has the outcome of the job.
  std::string vote(const std::string& request) {
    on_vote_();
    const std::string_view begin = R"("value":")";
    const std::size_t start = request.find(begin) + begin.size();
    const std::string value = request.substr(start, request.find('"', start) - start);
    if (own_.empty()) own_ = value;  // else it is the state
    const std::string state = to_base64(to_json(JobState{.outcome = "it is done"}));
    return FakeEtcd::response(
        R"({"header":{},"succeeded":true,"responses":[{"response_put":{}},{"response_range":{"kvs":[{"value":")" +
        value + R"(","create_revision":"5"}]}},{"response_range":{"kvs":[{"value":")" + state + R"("}]}}]})");
  }

  static JoinRecord record(const std::string& address) {
    JoinRecord record = node_at(address);
    record.node = "there";
    record.min_nodes = record.max_nodes = 1;
    return record;
  }
  /// One more launcher of a job of two, at the rendezvous that ours serves.
  std::unique_ptr<LauncherLink> other_of_two() {
    JoinRecord other = record("10.0.0.2");
    other.min_nodes = other.max_nodes = 2;
    const auto leader = leader_record_from_json(*from_base64(own_));
    return std::make_unique<LauncherLink>(
        loop_, LauncherLink::Options{.host = "127.0.0.1", .port = leader->port, .record = other, .connect = kPatience},
        LauncherLink::Events{.received = [](const LauncherMessage&) {},
                             .broken = [](const std::string&, const std::string&) {}});
  }

  void begin(Duration replacement, const std::string& address = "10.0.0.1", int nodes = 1) {
    RendezvousPlan plan;
    plan.host = "127.0.0.1";
    plan.etcd = {{.host = "127.0.0.1", .port = etcd_.port()}};
    plan.etcd_folder = "/lrun/job";
    plan.hosting = RendezvousPlan::Hosting::kNever;
    plan.join_timeout = plan.connect_timeout = kPatience;
    plan.heartbeat = heartbeat_;
    plan.replacement = replacement;
    JoinRecord own = record(address);
    own.min_nodes = own.max_nodes = plan.max_nodes = nodes;
    job_ = std::make_unique<Job>(loop_, plan, own, test::joined, 64);
    job_->set_events(*this);
  }

  void begun(const Membership& /*membership*/) override {
    told_ += "begun; ";
    job_->set_events(*this);
    on_begun_();
  }
  void spare(const std::string& /*text*/) override { told_ += "spare; ", on_spare_(); }
  void failed(const std::string& why, const std::string& /*hint*/) override {
    told_ += "failed: " + why;
    loop_.stop();
  }
  void lost(const std::string& /*node*/, const std::string& /*how*/, std::int64_t /*heard_ns*/,
            const std::string& /*spare*/) override {
    told_ += "lost; ";
  }
  void ended(const std::string& why, bool /*by_leader*/) override { told_ += "ended: " + why, loop_.stop(); }
  void leaderless(const std::string& /*how*/, std::int64_t /*heard_ns*/) override {
    told_ += "leaderless; ";
    on_leaderless_();
  }

  /// At the next turn of the loop: whoever tells us something is not destroyed meanwhile.
  void later(std::function<void()> what) { later_ = loop_.after(Duration::zero(), std::move(what)); }
  /// Until the launcher has joined.
  void when_joined(std::function<void()> what) {
    later_ = loop_.after(Duration(1), [this, what = std::move(what)] { job_->joined() ? what() : when_joined(what); });
  }

  void run() {
    const EventLoop::Timer limit = loop_.after(kPatience / 2, [this] {
      told_ += "looks for ever";
      loop_.stop();
    });
    loop_.run();
  }

  EventLoop loop_;
  FakeEtcd etcd_{loop_, [this](const std::string& request) { return answer(request); }};
  std::uint16_t port_ = 0;
  Duration heartbeat_ = kPatience;  ///< of our launcher
  int looked_ = 0;
  bool nobody_leads_ = false;   ///< whoever wants to may
  std::string own_;             ///< what our launcher has won with
  bool is_taken_away_ = false;  ///< and does not hold any more
  std::string seconds_ = "60";  ///< that a lease lives
  std::function<void()> on_vote_ = [] {};
  std::function<void()> on_revoked_ = [] {};
  std::unique_ptr<RendezvousServer> server_;
  std::unique_ptr<Job> job_;
  std::function<void()> on_begun_ = [] {};
  std::function<void()> on_spare_ = [] {};
  std::function<void()> on_leaderless_ = [] {};
  EventLoop::Timer later_;
  std::string told_;
};

TEST_F(JobInEtcd, LooksForALimitedTimeAlsoWhereTheNextLeaderIsOutOfReachToo) {
  on_begun_ = [this] { later([this] { open_rendezvous(); }); };  // the first one is gone
  on_leaderless_ = [this] { when_joined([this] { server_.reset(); }); };
  open_rendezvous();
  begin(Duration(2000));
  run();
  EXPECT_TRUE(told_.starts_with("begun; leaderless; ended: no leader was found within 2s: ")) << told_;
}

TEST_F(JobInEtcd, ASpareLooksForALimitedTime) {
  open_rendezvous();
  LauncherLink member(loop_, {.host = "127.0.0.1", .port = port_, .record = record("10.0.0.2"), .connect = kPatience},
                      {.received =
                           [this](const LauncherMessage& message) {
                             if (message.kind == LauncherMessage::Kind::kBegin) begin(Duration(300));
                           },
                       .broken = [](const std::string&, const std::string&) {}});
  on_spare_ = [this] { later([this] { server_.reset(); }); };
  run();
  EXPECT_TRUE(told_.starts_with("spare; ended: no leader was found within 300ms: ")) << told_;
}

/// Its last message and the end of the connection are one loss.
TEST_F(JobInEtcd, LooksOnceForAnotherLeaderWhenItIsRejected) {
  std::unique_ptr<RendezvousServer> first;
  on_leaderless_ = [&] {
    first = std::move(server_);
    open_rendezvous();
    when_joined([this] { loop_.stop(); });
  };
  open_rendezvous(Duration(500));
  begin(kPatience);  // it is silent for longer
  run();
  EXPECT_EQ(told_, "begun; leaderless; ");
  EXPECT_EQ(looked_, 2);
}

/// Its leader has gone with everything; the launcher was cut off before.
TEST_F(JobInEtcd, IsNotRunAgainByALauncherThatMissedItsEnd) {
  on_begun_ = [this] {
    nobody_leads_ = true;
    later([this] { server_.reset(); });
  };
  open_rendezvous();
  begin(kPatience);
  run();
  EXPECT_EQ(told_, "begun; leaderless; ended: it is done");
}

TEST_F(JobInEtcd, BeginsAnewForALauncherThatComesAfterItsEnd) {
  nobody_leads_ = true;
  on_begun_ = [this] { loop_.stop(); };
  begin(kPatience, "127.0.0.1");
  run();
  EXPECT_EQ(told_, "begun; ");
}

/// Nobody has to come through a firewall to itself: this address is nobody's.
TEST_F(JobInEtcd, BeginsWhereItsLeaderCannotReachItselfAsOthersDo) {
  nobody_leads_ = true;
  on_begun_ = [this] { loop_.stop(); };
  begin(kPatience, "192.0.2.1");
  run();
  EXPECT_EQ(told_, "begun; ");
  EXPECT_EQ(leader_record_from_json(*from_base64(own_))->address, "192.0.2.1") << "where others find it";
}

/// A launcher that stays for the others has no one to stay for then.
TEST_F(JobInEtcd, IsLeftAtOnceWhenThisLauncherLeadsNoLonger) {
  nobody_leads_ = true;
  seconds_ = "4";  // it looks every second
  std::unique_ptr<LauncherLink> other;
  on_begun_ = [&] {
    later([&] {
      job_->finish("", kPatience, [&] {
        told_ += "left";
        loop_.stop();
      });
      is_taken_away_ = true;
    });
  };
  begin(kPatience, "127.0.0.1", 2);
  when_joined([&] { other = other_of_two(); });
  run();
  EXPECT_EQ(told_, "begun; left");
}

/// It was interrupted between two leaders: the others must not go on.
TEST_F(JobInEtcd, TellsTheNextLeaderThatItHasEndedMeanwhile) {
  std::string told_to_other;
  const JoinRecord other = record("10.0.0.2");
  std::unique_ptr<LauncherLink> member;
  const auto stop_when_all_know = [&] {
    if (told_.ends_with("left") && !told_to_other.empty()) loop_.stop();
  };
  const auto left = [&] {
    told_ += "left";
    stop_when_all_know();
  };
  on_begun_ = [this] { later([this] { server_.reset(); }); };
  on_leaderless_ = [&] {
    later([&] {
      job_->finish("it was interrupted", kPatience, left);
      open_rendezvous();
      member = std::make_unique<LauncherLink>(
          loop_,
          LauncherLink::Options{
              .host = "127.0.0.1", .port = port_, .record = other, .connect = kPatience, .resumes = 0},
          LauncherLink::Events{.received =
                                   [&](const LauncherMessage& message) {
                                     told_to_other += message.text;
                                     stop_when_all_know();
                                   },
                               .broken = [](const std::string&, const std::string&) {},
                               .joined = [&] { member->send({.kind = LauncherMessage::Kind::kReady, .round = 1}); }});
    });
  };
  open_rendezvous();
  begin(kPatience, "10.0.0.1", 1);
  run();
  EXPECT_EQ(told_, "begun; leaderless; left");
  const bool is_told =
      told_to_other.find("has left the job") != std::string::npos || told_to_other == "the job is over";
  EXPECT_TRUE(is_told) << told_to_other;
}

/// Without a leader there is no one to wait for.
TEST_F(JobInEtcd, LooksForALimitedTimeForWhomToTellThatItHasEnded) {
  on_begun_ = [this] { later([this] { server_.reset(); }); };
  on_leaderless_ = [this] {
    nobody_leads_ = true;
    later([this] {
      job_->finish("it was interrupted", kPatience, [this] {
        told_ += "left";
        loop_.stop();
      });
    });
  };
  on_vote_ = [this] { told_ += "stands; "; };
  heartbeat_ = Duration(500);
  open_rendezvous();
  begin(kPatience);
  run();
  EXPECT_EQ(told_, "begun; leaderless; left");
}

TEST_F(JobInEtcd, IsNotHeldByALauncherThatLeftItDuringTheVote) {
  bool left = false;
  on_begun_ = [this] {
    nobody_leads_ = true;
    later([this] { server_.reset(); });
  };
  on_vote_ = [&] {
    left = true;
    job_->drop_out("it has to go");
  };
  on_revoked_ = [this] { loop_.stop(); };
  open_rendezvous();
  begin(kPatience);
  run();
  EXPECT_TRUE(left);
  EXPECT_EQ(told_, "begun; leaderless; ");
}

/// The loss was reported by the clock of the lost leader, not by that of the next one.
TEST_F(JobInEtcd, KeepsTheClockOfTheLostLeaderUntilTheNextRound) {
  std::optional<ClockOffset> lost;
  std::function<void()> when_known = [&] {
    job_->clock_offset().round_trip_ns >= 0 ? server_.reset() : later([&] { when_known(); });
  };
  on_begun_ = [&] { later([&] { when_known(); }); };
  on_leaderless_ = [&] {
    lost = job_->clock_offset();
    open_rendezvous();
    when_joined([this] { loop_.stop(); });
  };
  open_rendezvous();
  begin(kPatience);
  run();
  EXPECT_EQ(told_, "begun; leaderless; ");
  ASSERT_TRUE(lost);
  EXPECT_GE(lost->round_trip_ns, 0);
  EXPECT_EQ(job_->clock_offset(), *lost);
}

}  // namespace
}  // namespace lrun::launcher
