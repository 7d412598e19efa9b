// Launchers of a job without an etcd, over real sockets on one loop, which lose their leader.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "coordinator_harness.h"
#include "rendezvous/job.h"
#include "store/listening_socket.h"
#include "support/patience.h"

namespace lrun::launcher {
namespace {

using test::kPatience;

/// A launcher whose workers stop at once when they have to, and that is ready for every round.
class Launcher : public JobEvents {
 public:
  Launcher(EventLoop& loop, const RendezvousPlan& plan, const std::string& name)
      : loop_(loop), job_(loop, plan, record(plan, name), test::joined, 64) {
    job_.set_events(*this);
  }

  Job& job() { return job_; }
  [[nodiscard]] const std::vector<Membership>& rounds() const { return rounds_; }
  [[nodiscard]] bool runs_with(int nodes) const { return runs_ && rounds_.back().num_nodes == nodes; }
  [[nodiscard]] const std::string& told() const { return told_; }
  [[nodiscard]] bool has_ended() const { return has_ended_; }

  void begun(const Membership& membership) override {
    rounds_.push_back(membership);
    runs_ = true;
    job_.set_events(*this);
    loop_.stop();
  }
  void spare(const std::string& /*text*/) override { tell("spare"); }
  void stop(const std::string& /*text*/) override { stop_workers(); }
  void lost(const std::string& node, const std::string& /*how*/, std::int64_t /*heard_ns*/,
            const std::string& /*spare*/) override {
    tell("lost " + node);
    node.empty() ? end() : stop_workers();
  }
  void resized(const std::string& node, const std::string& /*text*/) override {
    tell("resized " + node);
    stop_workers();
  }
  void over(const std::string& report) override {
    tell("over " + report);
    job_.ready(0, "", {});
  }
  void ended(const std::string& why, bool /*by_leader*/) override {
    tell("ended " + why);
    end();
  }
  void failed(const std::string& why, const std::string& /*hint*/) override {
    tell("failed " + why);
    end();
  }
  void leaderless(const std::string& /*how*/, std::int64_t /*heard_ns*/) override {
    tell("leaderless");
    stop_workers();
  }
  void redirected(const std::string& /*text*/) override { tell("redirected"); }

 private:
  static JoinRecord record(const RendezvousPlan& plan, const std::string& name) {
    JoinRecord record = test::node_at("127.0.0.1");
    record.token = record.node = name;
    record.node_rank = plan.node_rank;
    record.min_nodes = plan.min_nodes;
    record.max_nodes = plan.max_nodes;
    return record;
  }
  void tell(const std::string& what) {
    told_ += what + "; ";
    loop_.stop();
  }
  void stop_workers() {
    if (std::exchange(runs_, false)) job_.report("r");
  }
  void end() {
    has_ended_ = true;
    runs_ = false;
  }

  EventLoop& loop_;
  std::vector<Membership> rounds_;
  bool runs_ = false;
  bool has_ended_ = false;
  std::string told_;
  Job job_;
};

class JobFailover : public ::testing::Test {
 protected:
  void start(const std::string& name, int least, int most, bool leads) {
    RendezvousPlan plan;
    plan.host = "127.0.0.1";
    plan.port = port_;
    plan.hosting = leads ? RendezvousPlan::Hosting::kMust : RendezvousPlan::Hosting::kNever;
    plan.min_nodes = least;
    plan.max_nodes = most;
    plan.last_call = last_call_;
    plan.heartbeat = Duration(2000);
    plan.join_timeout = plan.connect_timeout = plan.replacement = kPatience;
    launchers_.push_back(std::make_unique<Launcher>(loop_, plan, name));
  }
  Launcher& at(std::size_t index) { return *launchers_.at(index); }

  template <typename Predicate>
  void wait_until(Predicate is_true) {
    bool is_late = false;
    const EventLoop::Timer limit = loop_.after(kPatience, [&] {
      is_late = true;
      loop_.stop();
    });
    while (!is_true() && !is_late) loop_.run();
    std::string told;
    for (const auto& launcher : launchers_) told += launcher->told() + "| ";
    ASSERT_FALSE(is_late) << told;
  }

  EventLoop loop_;
  Duration last_call_{300};
  int port_ = port_of_socket(open_listening_socket(StoreReach::kLoopback, 0).get());
  std::vector<std::unique_ptr<Launcher>> launchers_;
};

TEST_F(JobFailover, MembersGoOnUnderASuccessor) {
  start("a", 1, 3, true);
  start("b", 1, 3, false);
  start("c", 1, 3, false);
  wait_until([&] { return at(0).runs_with(3) && at(1).runs_with(3) && at(2).runs_with(3); });
  EXPECT_TRUE(at(0).job().has_successors());
  EXPECT_FALSE(at(0).job().may_drop_out());
  EXPECT_TRUE(at(1).job().may_drop_out());
  at(0).job().abandon();
  wait_until([&] { return at(1).runs_with(2) && at(2).runs_with(2); });
  EXPECT_EQ(at(1).told(), "leaderless; over r|; ") << "the reports of the others are missing";
  EXPECT_EQ(at(1).rounds().back().round, 1);
  EXPECT_TRUE(at(1).job().has_successors()) << "it leads now";
  EXPECT_FALSE(at(2).job().has_successors());
}

TEST_F(JobFailover, ASpareFollowsTheJobAndTakesThePlace) {
  start("a", 2, 2, true);
  start("b", 2, 2, false);
  wait_until([&] { return at(0).runs_with(2) && at(1).runs_with(2); });
  start("c", 2, 2, false);
  wait_until([&] { return at(2).told() == "spare; "; });
  at(0).job().abandon();
  wait_until([&] { return at(1).runs_with(2) && at(2).runs_with(2) && at(1).rounds().size() == 2; });
  EXPECT_TRUE(at(2).told().starts_with("spare; redirected; ")) << at(2).told();
  EXPECT_EQ(at(2).rounds().size(), 1U);
}

TEST_F(JobFailover, ALauncherThatIsStartedAgainAtTheEndpointJoinsTheJobElsewhere) {
  start("a", 1, 2, true);
  start("b", 1, 2, false);
  wait_until([&] { return at(0).runs_with(2) && at(1).runs_with(2); });
  at(0).job().abandon();
  wait_until([&] { return at(1).runs_with(1); });
  last_call_ = Duration(3000);  // long enough for the leader's next look at the endpoint
  start("again", 1, 2, true);
  wait_until([&] { return at(1).runs_with(2) && at(2).runs_with(2); });
  EXPECT_TRUE(at(2).told().starts_with("redirected; ")) << at(2).told();
  EXPECT_EQ(at(2).rounds().size(), 1U) << "it has not begun a second job";
}

TEST_F(JobFailover, AJobThatEndsWithItsLinkReportsThatTheConnectionIsGone) {
  std::vector<int> connections;
  start("a", 2, 2, true);
  at(0).job().on_connection([this, &connections](int connection) {
    connections.push_back(connection);
    loop_.stop();
  });
  wait_until([&] { return !connections.empty(); });
  launchers_.clear();
  ASSERT_EQ(connections.size(), 2U);
  EXPECT_GE(connections[0], 0);
  EXPECT_EQ(connections[1], -1);
}

TEST_F(JobFailover, TheLeaderGoesOnWithoutAMemberThatDropsOut) {
  start("a", 1, 2, true);
  start("b", 1, 2, false);
  wait_until([&] { return at(0).runs_with(2) && at(1).runs_with(2); });
  at(1).job().drop_out("it has to go");
  wait_until([&] { return at(0).runs_with(1); });
  EXPECT_TRUE(at(0).told().starts_with("lost b; ")) << at(0).told();
  EXPECT_FALSE(at(0).job().has_successors()) << "it is alone";
  EXPECT_EQ(at(1).told(), "") << "nothing more is reported to a launcher that left";
}

}  // namespace
}  // namespace lrun::launcher
