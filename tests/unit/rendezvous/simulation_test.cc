#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <map>
#include <random>

#include "launcher_records.h"
#include "rendezvous/coordinator.h"

namespace lrun {
namespace {

using namespace std::chrono_literals;
using Kind = LauncherMessage::Kind;

/// One launcher as the coordinator sees it: joins, runs its workers, stops when told, reports, and goes on or leaves as
/// all agree to.
struct Node {
  enum class State { kAway, kJoined, kRunning, kStopping, kReported, kReady, kGone, kDead };

  JoinRecord record;
  State state = State::kAway;
  int round = 0;
  Membership membership;
  std::deque<LauncherMessage> to_holder;  ///< on their way; in order
  std::deque<LauncherMessage> from_holder;
};

/// A job of several nodes in one process: every step is drawn from the seed.
class Simulation {
 public:
  explicit Simulation(unsigned seed) : random_(seed) {
    const int most = draw(1, 5);
    const int least = draw(1, most);
    restarts_left_ = draw(0, 3);
    nodes_.resize(static_cast<std::size_t>(draw(least, most)));
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      nodes_[i].record = test::node_at("10.0.0." + std::to_string(i + 1), draw(1, 4));
      nodes_[i].record.min_nodes = least;
      nodes_[i].record.max_nodes = most;
    }
  }

  /// Until nobody can do anything any more. Some time passes now and then.
  void run() {
    for (int step = 0; step < 20'000; ++step) {
      if (settled()) return;
      step_of(static_cast<std::size_t>(draw(0, static_cast<int>(nodes_.size()) - 1)));
      if (draw(0, 9) == 0) {
        now_ += Duration(draw(1, 3000));
        coordinator_.advance(now_);
        deliver();
      }
    }
    FAIL() << "the job neither ends nor fails";
  }

  [[nodiscard]] bool settled() const {
    return std::all_of(nodes_.begin(), nodes_.end(), [](const Node& node) {
      return node.state == Node::State::kGone || node.state == Node::State::kDead;
    });
  }

  /// Only the living count as members of the same round; they must agree on everything.
  void check() const {
    std::map<int, Membership> rounds;
    for (const Membership& begun : begun_) {
      const auto [entry, fresh] = rounds.emplace(begun.round, begun);
      Membership same = begun;
      same.node_rank = entry->second.node_rank;
      EXPECT_EQ(same, entry->second) << "nodes of one round disagree";
    }
    for (const auto& [round, membership] : rounds) {
      EXPECT_EQ(membership_from_json(to_json(membership)), membership) << "round " << round << " contradicts itself";
    }
  }

 private:
  using State = Node::State;

  int draw(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }

  void send(Node& node, Kind kind, int round = 0, const std::string& text = {}) {
    node.to_holder.push_back({.kind = kind, .round = round, .text = text});
  }

  /// One thing happens to one node: it acts, or a message of its arrives somewhere.
  void step_of(std::size_t index) {
    Node& node = nodes_[index];
    if (node.state == State::kDead || node.state == State::kGone) return drain(index);
    switch (draw(0, 3)) {
      case 0:
        return act(index);
      case 1:
        return arrive_at_holder(index);
      default:
        return arrive_at_node(node);
    }
  }

  void drain(std::size_t index) {
    if (!nodes_[index].to_holder.empty()) arrive_at_holder(index);
  }

  void act(std::size_t index) {
    Node& node = nodes_[index];
    if (draw(0, 99) == 0) return die(index);
    if (node.state == State::kAway) {
      node.to_holder.push_back({.kind = Kind::kJoin, .join = node.record});
      node.state = State::kJoined;
    } else if (node.state == State::kRunning) {
      const bool fails = draw(0, 3) == 0;
      if (fails) send(node, Kind::kStopping, node.round, "failed");
      send(node, Kind::kReport, node.round, fails ? "failed" : "succeeded");
      node.state = State::kReported;
    } else if (node.state == State::kStopping) {
      send(node, Kind::kReport, node.round, "stopped");
      node.state = State::kReported;
    }
  }

  void die(std::size_t index) {
    nodes_[index].state = State::kDead;
    nodes_[index].to_holder.clear();
    coordinator_.left(index + 1, "killed", now_);
    deliver();
  }

  void arrive_at_holder(std::size_t index) {
    Node& node = nodes_[index];
    if (node.to_holder.empty()) return;
    const LauncherMessage message = node.to_holder.front();
    node.to_holder.pop_front();
    coordinator_.received(index + 1, message, now_);
    deliver();
  }

  void deliver() {
    for (Coordinator::Send& send : coordinator_.take_sends()) {
      nodes_.at(send.to - 1).from_holder.push_back(std::move(send.message));
    }
  }

  void leave(Node& node) {
    send(node, Kind::kBye);
    node.state = State::kGone;
  }

  void arrive_at_node(Node& node) {
    if (node.from_holder.empty()) return;
    const LauncherMessage message = node.from_holder.front();
    node.from_holder.pop_front();
    switch (message.kind) {
      case Kind::kBegin:
        EXPECT_TRUE(node.state == State::kJoined || node.state == State::kReady);
        node.membership = *message.membership;
        node.round = message.round;
        begun_.push_back(node.membership);
        node.state = State::kRunning;
        break;
      case Kind::kStop:
      case Kind::kLost:
        if (node.state == State::kRunning) node.state = State::kStopping;
        if (node.state == State::kReady) leave(node);
        break;
      case Kind::kOver:
        EXPECT_EQ(node.state, State::kReported) << "a round is over only when all have reported";
        EXPECT_EQ(message.payloads.size(), node.membership.members.size());
        decide(node, message.payloads);
        break;
      case Kind::kRefused:
        node.state = State::kGone;
        break;
      default:
        break;
    }
  }

  /// Everybody decides alike from the same reports.
  void decide(Node& node, const std::vector<std::string>& reports) {
    const bool lost = std::find(reports.begin(), reports.end(), "") != reports.end();
    const bool failed = std::find(reports.begin(), reports.end(), "failed") != reports.end();
    if (!failed || lost || node.round >= restarts_left_) return leave(node);
    if (draw(0, 19) == 0) return leave(node);  // it cannot go on, and nobody else knows
    send(node, Kind::kReady, node.round + 1);
    node.state = State::kReady;
  }

  std::mt19937 random_;
  SteadyTime now_ = SteadyTime(100s);
  Coordinator coordinator_{MeetingTimes{.join = 600s}, now_};
  std::vector<Node> nodes_;
  std::vector<Membership> begun_;
  int restarts_left_ = 0;
};

/// LRUN_SEED=n replays one schedule.
TEST(RendezvousSimulation, EndsForEverybodyWhateverHappensInWhateverOrder) {
  const char* const one = std::getenv("LRUN_SEED");
  const unsigned first = one != nullptr ? static_cast<unsigned>(std::strtoul(one, nullptr, 10)) : 1;
  const unsigned last = one != nullptr ? first : 1000;
  for (unsigned seed = first; seed <= last; ++seed) {
    SCOPED_TRACE("LRUN_SEED=" + std::to_string(seed) + " replays this schedule");
    Simulation simulation(seed);
    simulation.run();
    simulation.check();
    if (::testing::Test::HasFailure()) return;
  }
}

/// The messages that a round costs grow with the nodes and not with their square.
TEST(RendezvousSimulation, CostsOneMessageANodeToBeginWithManyNodes) {
  constexpr int kNodes = 300;
  const SteadyTime now(100s);
  Coordinator coordinator(MeetingTimes{}, now);
  for (int i = 0; i < kNodes; ++i) {
    JoinRecord record = test::node_at("10.0." + std::to_string(i / 250) + "." + std::to_string(i % 250 + 1));
    record.min_nodes = record.max_nodes = kNodes;
    coordinator.received(static_cast<LauncherId>(i + 1), {.kind = Kind::kJoin, .join = std::move(record)}, now);
  }
  const auto sent = coordinator.take_sends();
  ASSERT_EQ(sent.size(), std::size_t{kNodes});
  EXPECT_EQ(sent.back().message.membership->members.size(), std::size_t{kNodes});
  EXPECT_EQ(sent.back().message.membership->node_rank, kNodes - 1);
}

}  // namespace
}  // namespace lrun
