#pragma once

#include <deque>
#include <list>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "launcher_records.h"
#include "rendezvous/coordinator.h"
#include "rendezvous/successor_search.h"

namespace lrun::test {
using namespace launcher;

inline constexpr Duration kHeartbeat(4000);
/// A launcher that is cut off runs on until it notices, and those that go on without it need a while to begin.
inline constexpr Duration kLongestOverlap = 4 * kHeartbeat;
inline constexpr Duration kQuiet = 16 * kHeartbeat;
/// Between two moments in which a launcher acts.
inline constexpr Duration kLongestTick(300);
/// How often a leader away from the endpoint looks there, and how long a rendezvous waits for more launchers.
inline constexpr Duration kLook(300);
inline constexpr Duration kLastCall(1200);
/// After so long whoever listens at the endpoint is invited.
inline constexpr Duration kLongestLook = kLook + 2 * kLongestTick;
/// On the host of launcher 0.
inline constexpr int kEndpoint = 29400;

/// One direction of a connection: what is said arrives in order, and its end behind it.
struct Wire {
  std::deque<LauncherMessage> messages;
  bool ended = false;
};

struct Connection {
  int client = 0;
  int server = 0;
  int port = 0;
  ConnectionId id = 0;
  bool invites = false;
  Wire up;
  Wire down;
  bool client_open = true;
  bool server_open = true;
  SteadyTime heard_by_client;
  SteadyTime heard_by_server;
  SteadyTime beaten;
};

/// The address of a rendezvous that a launcher of the cluster serves, or served.
struct Place {
  int launcher = 0;
  int port = kEndpoint;
  bool operator==(const Place&) const = default;
};

struct Launcher {
  JoinRecord record;
  bool alive = false;                       ///< its process is
  bool off = false;                         ///< its host is without power
  bool stopped = false;                     ///< SIGSTOP
  std::map<int, Coordinator> coordinators;  ///< by port: what it holds, and what it has given away
  int holds = 0;                            ///< the port of the one that it holds; 0: none
  Connection* link = nullptr;
  Connection* invitation = nullptr;
  SteadyTime looked;
  std::optional<Membership> membership;
  bool known_to_all = false;
  bool running = false;
  bool leaderless = false;
  bool said_ready = false;
  bool waits = false;  ///< for a place in a job that runs
  std::optional<SuccessorSearch> search;
  std::optional<SuccessorSearch::Step> step;  ///< that waits for an answer
  Place asks;                                 ///< for the lost leader, or the next one
  std::optional<Place> sent_to;
  std::vector<Place> line;  ///< of a spare: the leader and its successors
  std::size_t turned_to = 0;
  SteadyTime asked;  ///< since when an answer is waited for
};

/// A process has the name of its host, and one more mark for each that was there before it.
inline constexpr char kMark = '+';

/// A job without an etcd in one process, whose launchers die, are started again, stand still and are cut off from each
/// other. Time and order are drawn from a seed.
class Cluster {
 public:
  Cluster(unsigned seed, int launchers, int least);

  void start(int index);
  /// A new process on the host of one that is dead, where the host has power.
  void start_again(int index);
  /// kill -9, or a machine without power, which says nothing any more.
  void kill(int index, bool power);
  void stop(int index) { at(index).stopped = at(index).alive; }
  /// lrun sees that it stood still, and begins to count silence anew.
  void go_on(int index);
  void cut(int from, int to) { cut_[index_of(from)][index_of(to)] = from != to; }
  void heal();
  void pass(Duration time);

  [[nodiscard]] int running() const;
  /// The jobs that run, by round and leader.
  [[nodiscard]] int jobs() const;
  /// Nobody hangs between two rounds.
  void expect_everybody_decided() const;
  /// Jobs that began at the endpoint beside one that had no time to look there, as the manual has it.
  [[nodiscard]] int second_jobs() const { return second_jobs_; }

  [[nodiscard]] int count() const { return static_cast<int>(launchers_.size()); }
  [[nodiscard]] const Launcher& launcher(int index) const { return launchers_.at(index_of(index)); }

 private:
  using Kind = LauncherMessage::Kind;
  using Step = SuccessorSearch::Step;

  static std::size_t index_of(int index) { return static_cast<std::size_t>(index); }
  int draw(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }
  Launcher& at(int index) { return launchers_.at(index_of(index)); }
  [[nodiscard]] bool hears(int listener, int speaker) const { return !cut_[index_of(speaker)][index_of(listener)]; }
  [[nodiscard]] bool reaches(int one, int other) const { return hears(one, other) && hears(other, one); }
  [[nodiscard]] bool answers(const Place& place, int whom) const;
  [[nodiscard]] bool refuses(const Place& place, int whom) const;
  [[nodiscard]] Place place_of(const RendezvousAddress& place) const;
  [[nodiscard]] int launcher_named(const std::string& name) const;

  Coordinator& open_rendezvous(Launcher& launcher, int port);
  void end(Wire& wire, bool& open, bool power);
  void leave(int index) { kill(index, false); }
  void act(int index);
  void find_leader(int index);
  void ask_endpoint_again(int index, bool nothing_came_of_it);
  void gather_here(int index);
  void follow_as_spare(int index);
  Connection* connect(int client, const Place& server, LauncherMessage first);
  void join(int index, const Place& place);
  void hold(int index);
  void hold(int index, int port);
  void take_from(Connection& connection, Coordinator& coordinator);
  void send(int index, int port);
  void look_at_endpoint(int index);
  void hear_of_endpoint(int index);
  void listen(int index);
  void send_heartbeat(Connection& link);
  void say(int index, Kind kind, int round) { at(index).link->up.messages.push_back({.kind = kind, .round = round}); }
  void take(int index, const LauncherMessage& message);
  void redirect(int index, const Place& place);
  void close_link(int index);
  void lose_link(int index, bool closed);
  void follow(int index, const Step& step);
  void vote(int index, const Place& leader);
  void take_step(int index);
  void expect_one_job();
  void watch_endpoint();
  [[nodiscard]] bool can_look_at_endpoint(const Launcher& launcher, int index) const;

  std::mt19937 random_;
  SteadyTime now_ = SteadyTime(std::chrono::seconds(100));
  SteadyTime together_ = now_;
  std::vector<Launcher> launchers_;
  std::vector<std::vector<bool>> cut_;  ///< what the first says does not come to the second
  std::list<Connection> connections_;
  ConnectionId last_id_ = 0;
  bool is_first_life_ = true;                   ///< of the launcher at the endpoint
  bool begun_at_endpoint_ = false;              ///< in this life
  std::optional<SteadyTime> could_look_since_;  ///< for a leader elsewhere, at this life
  int second_jobs_ = 0;
};

}  // namespace lrun::test
