#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "coordinator_harness.h"
#include "launcher_records.h"
#include "rendezvous/coordinator.h"

namespace lrun::launcher {
namespace {

using namespace std::chrono_literals;
using Kind = LauncherMessage::Kind;

/// One launcher as the coordinator sees it: joins, runs its workers, stops when told, reports, and goes on or leaves as
/// all agree to. Or it dies, is cut off (the others hear nothing of it, nor it of them), or leaves.
struct Node {
  enum class State { kAway, kJoined, kRunning, kStopping, kReported, kReady, kCut, kGone, kDead };

  JoinRecord record;
  State state = State::kAway;
  int round = -1;
  bool final = false;  ///< somebody asked for the end of the job, as far as it knows
  Membership membership;
  std::deque<LauncherMessage> to_leader;  ///< on their way; in order
  std::deque<LauncherMessage> from_leader;
};

/// What a launcher says that somebody wants to end.
constexpr const char* kInterrupted = "interrupted";

/// A job of several nodes in one process: every step is drawn from the seed.
class Simulation {
 public:
  explicit Simulation(unsigned seed) : random_(seed) {
    most_ = draw(1, 5);
    least_ = draw(1, most_);
    restarts_ = draw(0, 3);
    comebacks_left_ = draw(0, 3);
    const int spares = draw(0, 2);
    const int nodes = draw(least_, most_ + spares);
    for (int i = 0; i < nodes; ++i) add_node(i + 1);
  }

  /// Until nobody can do anything any more. Some time passes now and then.
  void run() {
    for (int step = 0; step < 40'000; ++step) {
      if (known_to_all()) return;
      step_of(static_cast<std::size_t>(draw(0, static_cast<int>(nodes_.size()) - 1)));
      if (draw(0, 9) == 0) {
        now_ += Duration(draw(1, 3000));
        coordinator_.advance(now_);
        deliver();
      }
    }
    FAIL() << "the job neither ends nor fails";
  }

  [[nodiscard]] bool known_to_all() const {
    return std::all_of(nodes_.begin(), nodes_.end(), [](const Node& node) {
      return node.state == Node::State::kGone || node.state == Node::State::kDead;
    });
  }

  /// The nodes of a round agree on everything; rounds are as large as they may be, and count restarts.
  void check() const {
    std::map<int, Membership> rounds;
    for (const Membership& begun : begun_) {
      const auto [entry, fresh] = rounds.emplace(begun.round, begun);
      Membership same = begun;
      same.self = entry->second.self;
      EXPECT_EQ(same, entry->second) << "nodes of one round disagree";
    }
    const Membership* last = nullptr;
    for (const auto& [round, membership] : rounds) {
      EXPECT_EQ(membership_from_json(to_json(membership), to_json(membership.self)), membership)
          << "round " << round << " contradicts itself";
      const int size = membership.num_nodes;
      EXPECT_TRUE(size >= least_ && size <= most_) << "round " << round << " has " << size << " nodes";
      if (last != nullptr) check_follows(*last, membership);
      last = &membership;
    }
  }

 private:
  using State = Node::State;

  int draw(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }

  void add_node(int host) {
    Node node;
    node.record = test::node_at("10.0.0." + std::to_string(host), draw(1, 4));
    node.record.token = "launcher " + std::to_string(nodes_.size());
    node.record.min_nodes = least_;
    node.record.max_nodes = most_;
    nodes_.push_back(std::move(node));
  }

  void check_follows(const Membership& before, const Membership& after) const {
    const bool failed = failed_rounds_.count(before.round) != 0;
    EXPECT_GE(after.attempt, before.attempt);
    EXPECT_LE(after.attempt, before.attempt + (failed ? 1 : 0)) << "only a failure costs a restart";
    EXPECT_LE(after.attempt, restarts_);
    std::vector<std::string> stayed;
    for (const Member& member : members_.at(before.round)) {
      for (const Member& other : members_.at(after.round)) {
        if (other.name == member.name) stayed.push_back(member.name);
      }
    }
    std::size_t next = 0;
    for (const Member& member : members_.at(after.round)) {
      if (next < stayed.size() && member.name == stayed[next]) ++next;
    }
    EXPECT_EQ(next, stayed.size()) << "the order of those that stayed has changed";
  }

  void send(Node& node, Kind kind, int round = 0, const std::string& text = {}, int attempt = 0) {
    node.to_leader.push_back({.kind = kind, .round = round, .text = text, .attempt = attempt});
  }

  /// One thing happens to one node: it acts, or a message of its arrives somewhere.
  void step_of(std::size_t index) {
    Node& node = nodes_[index];
    if (node.state == State::kDead || node.state == State::kGone) return drain(index);
    switch (draw(0, 3)) {
      case 0:
        return act(index);
      case 1:
        return arrive_at_leader(index);
      default:
        return arrive_at_node(node);
    }
  }

  void drain(std::size_t index) {
    if (!nodes_[index].to_leader.empty()) arrive_at_leader(index);
  }

  void act(std::size_t index) {
    Node& node = nodes_[index];
    if (node.state == State::kCut) {
      node.state = State::kDead;  // it has noticed that it hears nothing, and stopped its workers
      return;
    }
    const int fate = draw(0, node.final ? 5 : 149);  // who asks for the end often takes the node away, too
    if (fate == 0) return part(index, State::kDead, "killed");
    if (fate == 1 && node.state != State::kAway) return part(index, State::kCut, "silence for 5s");
    if (fate == 2 && node.state != State::kAway) return drop_out(node);
    if (node.state == State::kAway) {
      node.to_leader.push_back({.kind = Kind::kJoin, .join = node.record});
      node.state = State::kJoined;
    } else if (node.state == State::kRunning) {
      end_workers(node);
    } else if (node.state == State::kStopping) {
      send(node, Kind::kReport, node.round, "stopped");
      node.state = State::kReported;
    }
  }

  /// Some workers take their time, so that others may come.
  void end_workers(Node& node) {
    if (draw(0, 2) != 0) return;
    const int how = draw(0, 11);
    node.final = how == 0;
    const std::string reason = node.final ? kInterrupted : how < 4 ? "failed" : "";
    if (!reason.empty()) send(node, Kind::kStopping, node.round, reason);
    send(node, Kind::kReport, node.round, reason.empty() ? "succeeded" : reason);
    node.state = State::kReported;
  }

  void part(std::size_t index, State state, const std::string& how) {
    nodes_[index].state = state;
    nodes_[index].to_leader.clear();
    nodes_[index].from_leader.clear();
    coordinator_.left(index + 1, how, now_, now_);
    deliver();
    if (comebacks_left_-- > 0) add_node(static_cast<int>(nodes_.size()) + 1);
  }

  void drop_out(Node& node) {
    send(node, Kind::kDropOut, node.round, "received SIGTERM");
    node.state = State::kGone;
  }

  void arrive_at_leader(std::size_t index) {
    Node& node = nodes_[index];
    if (node.to_leader.empty()) return;
    const LauncherMessage message = node.to_leader.front();
    node.to_leader.pop_front();
    if (message.kind == Kind::kReport && message.text == "failed") failed_rounds_.insert(message.round);
    coordinator_.received(index + 1, message, now_);
    deliver();
  }

  void deliver() {
    const std::vector<OutgoingMessage> sends = coordinator_.outbox().take_messages();
    for (const OutgoingMessage& send : sends) {
      if (send.message.kind == Kind::kBegin) members_[send.message.round] = send.selves;
    }
    for (test::Told& send : test::one_by_one(sends)) {
      Node& node = nodes_.at(send.to - 1);
      if (send.message.kind == Kind::kBegin) {
        expect_quiet_before(send.message.round);
        EXPECT_FALSE(called_off_) << "round " << send.message.round << " begins though the job was told to end";
      }
      if (send.message.kind == Kind::kStop && send.message.text == kInterrupted) called_off_ = true;
      if (node.state != State::kDead && node.state != State::kCut) node.from_leader.push_back(std::move(send.message));
    }
  }

  /// Workers of the last round run nowhere any more but where nobody can know.
  void expect_quiet_before(int round) const {
    for (const Node& node : nodes_) {
      const bool works = node.state == State::kRunning || node.state == State::kStopping;
      EXPECT_FALSE(works && node.round < round) << "round " << round << " begins while another one runs";
    }
  }

  void leave(Node& node) {
    send(node, Kind::kLeave);
    node.state = State::kGone;
  }

  void arrive_at_node(Node& node) {
    if (node.from_leader.empty()) return;
    const LauncherMessage message = node.from_leader.front();
    node.from_leader.pop_front();
    switch (message.kind) {
      case Kind::kBegin:
        EXPECT_TRUE(node.state == State::kJoined || node.state == State::kReady);
        node.membership = *message.membership;
        node.round = message.round;
        begun_.push_back(node.membership);
        node.state = State::kRunning;
        break;
      case Kind::kStop:
        node.final = node.final || message.text == kInterrupted;
        if (node.state == State::kReady) leave(node);
        [[fallthrough]];
      case Kind::kLost:
      case Kind::kResize:
        if (node.state == State::kRunning) node.state = State::kStopping;
        break;
      case Kind::kOver:
        EXPECT_EQ(node.state, State::kReported) << "a round is over only when all have reported";
        decide(node, message.text);
        break;
      case Kind::kRejected:
      case Kind::kEnded:
        node.state = State::kGone;
        break;
      default:
        break;
    }
  }

  /// Everybody decides alike from the same reports.
  void decide(Node& node, const std::string& reports) {
    const auto has = [&](const std::string& report) {
      return ("|" + reports + "|").find("|" + report + "|") != std::string::npos;
    };
    const bool failed = has("failed");
    const int attempt = node.membership.attempt + (failed ? 1 : 0);
    const bool goes_on = failed || has("") || has("stopped");
    if (node.final || has(kInterrupted) || !goes_on || attempt > restarts_) return leave(node);
    if (draw(0, 19) == 0) return leave(node);  // it cannot go on, and nobody else knows
    send(node, Kind::kReady, node.round + 1, "", attempt);
    node.state = State::kReady;
  }

  std::mt19937 random_;
  int most_ = 1;
  int least_ = 1;
  int restarts_ = 0;
  int comebacks_left_ = 0;
  SteadyTime now_ = SteadyTime(100s);
  Coordinator coordinator_{{.times = {.join = 60s, .replacement = 60s}, .merge = test::joined}, now_};
  std::vector<Node> nodes_;
  std::vector<Membership> begun_;
  std::map<int, std::vector<Member>> members_;  ///< of each round
  std::set<int> failed_rounds_;
  bool called_off_ = false;  ///< somebody asked for its end, and others were told
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

}  // namespace
}  // namespace lrun::launcher
