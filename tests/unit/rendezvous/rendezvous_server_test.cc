// The rendezvous over real sockets, all ends on one loop.
#include "rendezvous/rendezvous_server.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "coordinator_harness.h"
#include "rendezvous/handshake.h"
#include "rendezvous/launcher_link.h"
#include "store/listening_socket.h"
#include "support/patience.h"
#include "wire/connect.h"

namespace lrun::launcher {
namespace {

using namespace std::chrono_literals;
using Kind = LauncherMessage::Kind;

using test::kPatience;

/// A loop that stops, and fails the test, when timeout ends.
class PatientLoop {
 public:
  void run() {
    const EventLoop::Timer limit = loop.after(kPatience, [this] {
      ADD_FAILURE() << "nothing happened";
      loop.stop();
    });
    loop.run();
  }
  EventLoop loop;
};

std::unique_ptr<RendezvousServer> hold(EventLoop& loop, std::uint16_t port = 0, Duration heartbeat = kPatience) {
  return std::make_unique<RendezvousServer>(
      loop, RendezvousServer::Options{.port = port,
                                      .reach = StoreReach::kLoopback,
                                      .times = {.join = kPatience, .heartbeat = heartbeat},
                                      .merge = test::joined});
}

struct MetLauncher {
  MetLauncher(EventLoop& loop, std::uint16_t port, int rank, std::function<void()> told, Duration connect = kPatience)
      : MetLauncher(loop, port, test::node_at("127.0.0." + std::to_string(rank + 1), 1, rank), std::move(told),
                    connect) {}

  MetLauncher(EventLoop& loop, std::uint16_t port, const JoinRecord& record, std::function<void()> told,
              Duration connect = kPatience)
      : link(loop, {.host = "127.0.0.1", .port = port, .record = record, .connect = connect, .heartbeat = kPatience},
             {.received =
                  [this, told](const LauncherMessage& message) {
                    last = message;
                    told();
                  },
              .broken =
                  [this, told](const std::string& reason, const std::string&) {
                    why = reason;
                    told();
                  }}) {}

  [[nodiscard]] bool was_told(Kind kind) const { return last && last->kind == kind; }

  std::optional<LauncherMessage> last;
  std::string why;
  LauncherLink link;
};

TEST(RendezvousServer, BringsLaunchersTogetherAndTellsWhoIsLost) {
  PatientLoop patient;
  const auto leader = hold(patient.loop);
  std::optional<MetLauncher> first;
  std::optional<MetLauncher> second;
  const auto begun = [&] {
    if (first->was_told(Kind::kBegin) && second->was_told(Kind::kBegin)) patient.loop.stop();
  };
  first.emplace(patient.loop, leader->server().port(), 0, begun);
  second.emplace(patient.loop, leader->server().port(), 1, begun);
  patient.run();
  ASSERT_TRUE(first->last->membership && second->last->membership);
  EXPECT_EQ(first->last->membership->self.node_rank, 0);
  EXPECT_EQ(second->last->membership->self.node_rank, 1);

  std::optional<MetLauncher> late;
  second->link.close();
  late.emplace(patient.loop, leader->server().port(), 1, [&] { patient.loop.stop(); });
  while (!first->was_told(Kind::kLost) || !late->last) {
    if (HasFailure()) break;
    patient.run();
  }
  EXPECT_EQ(first->last->text, "its launcher ended: the connection was closed");
  EXPECT_TRUE(late->was_told(Kind::kSpare)) << "it waits for the next round";
}

/// A firewall may reset the connections of launchers that live on, and can go on without the leader.
TEST(RendezvousServer, EndsWhereTheConnectionsOfMostAreClosedAndTheyStillListen) {
  for (const bool live : {true, false}) {
    PatientLoop patient;
    RendezvousServer leader(patient.loop, {.reach = StoreReach::kLoopback,
                                           .times = {.join = kPatience, .last_call = kPatience, .heartbeat = 2s},
                                           .merge = test::joined,
                                           .members_elect_leader = true});
    std::vector<Fd> standbys;
    std::vector<std::unique_ptr<MetLauncher>> launchers;
    int begun = 0;
    int lost = 0;
    bool ended = false;
    for (int rank = 0; rank < 3; ++rank) {
      standbys.push_back(open_listening_socket(StoreReach::kLoopback, 0));
      JoinRecord record = test::node_at("127.0.0.1", 1, rank);
      record.token += std::to_string(rank);
      record.standby_port = port_of_socket(standbys.back().get());
      record.min_nodes = 1;
      record.max_nodes = 3;
      launchers.push_back(std::make_unique<MetLauncher>(patient.loop, leader.server().port(), record, [&, rank] {
        const MetLauncher& told = *launchers[static_cast<std::size_t>(rank)];
        if (told.was_told(Kind::kBegin)) ++begun;
        if (told.was_told(Kind::kLost)) ++lost;
        ended = ended || told.was_told(Kind::kEnded);
        patient.loop.stop();
      }));
    }
    while (begun < 3 && !HasFailure()) patient.run();
    for (const std::size_t rank : {1U, 2U}) {
      if (!live) standbys[rank].reset();
      launchers[rank]->link.close();
    }
    while (!ended && lost < 2 && !HasFailure()) patient.run();
    EXPECT_EQ(ended, live) << launchers.front()->last->text;
  }
}

TEST(RendezvousServer, IsWaitedForByWhoComesBeforeIt) {
  PatientLoop patient;
  const std::uint16_t port = hold(patient.loop)->server().port();  // nobody listens there any more
  std::unique_ptr<RendezvousServer> leader;
  std::optional<MetLauncher> early;
  std::optional<MetLauncher> second;
  const auto begun = [&] {
    if (early->was_told(Kind::kBegin)) patient.loop.stop();
  };
  early.emplace(patient.loop, port, 0, begun);
  const EventLoop::Timer later = patient.loop.after(100ms, [&] {
    leader = hold(patient.loop, port);
    second.emplace(patient.loop, port, 1, begun);
  });
  patient.run();
  EXPECT_TRUE(early->was_told(Kind::kBegin)) << early->why;
}

TEST(RendezvousServer, IsGivenUpWhenNobodyHoldsIt) {
  PatientLoop patient;
  const std::uint16_t port = hold(patient.loop)->server().port();
  MetLauncher alone(
      patient.loop, port, 0, [&] { patient.loop.stop(); }, 100ms);
  patient.run();
  EXPECT_EQ(alone.why, "cannot connect to 127.0.0.1 port " + std::to_string(port) + ": Connection refused");
}

/// The answer of the leader to these bytes before it closes the connection.
std::string answer_to(const std::string& bytes, Duration heartbeat = kPatience) {
  PatientLoop patient;
  const auto leader = hold(patient.loop, 0, heartbeat);
  const Fd socket = connect_to("127.0.0.1", leader->server().port(), std::chrono::steady_clock::now() + kPatience);
  EXPECT_EQ(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  std::string answer;
  const EventLoop::Watch watch = patient.loop.on_readable(socket.get(), [&] {
    char piece[4096];
    const ssize_t count = ::recv(socket.get(), piece, sizeof piece, 0);
    if (count <= 0) return patient.loop.stop();
    answer.append(piece, static_cast<std::size_t>(count));
  });
  patient.run();
  return answer;
}

TEST(RendezvousServer, ClosesWhoSpeaksNonsense) {
  const std::string hello = Handshake(Handshake::Side::kLauncher, "", random_nonce()).take_output();
  EXPECT_NE(answer_to(hello + "\x7f\xff\xff\xff").find("the limit is 262144"), std::string::npos);
  EXPECT_NE(answer_to(hello + std::string("\0\0\0\2{}", 6)).find("an invalid message"), std::string::npos);
  EXPECT_TRUE(answer_to("lrun-job/9\n").starts_with("lrun-job/8 ")) << "the other end can say which version this is";
  EXPECT_EQ(answer_to("lrun-job/" + std::string(1000, 'x')), "") << "a line without an end";
  EXPECT_EQ(answer_to("GET / HTTP/1.1\r\n"), "") << "neither a launcher nor a client of the store";
}

TEST(RendezvousServer, ClosesWhoDoesNotSayAnything) { EXPECT_EQ(answer_to("lrun-job/8", 50ms), ""); }

TEST(RendezvousServer, IsNotLookedForWhereSomethingElseAnswers) {
  PatientLoop patient;
  const Fd listener = open_listening_socket(StoreReach::kLoopback, 0);
  Fd client;
  const EventLoop::Watch watch = patient.loop.on_readable(listener.get(), [&] {
    client = Fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const std::string words = "SSH-2.0-OpenSSH_9.2\r\n";
    EXPECT_EQ(::send(client.get(), words.data(), words.size(), MSG_NOSIGNAL), static_cast<ssize_t>(words.size()));
  });
  const MetLauncher launcher(patient.loop, port_of_socket(listener.get()), 0, [&] { patient.loop.stop(); });
  patient.run();
  EXPECT_NE(launcher.why.find("it is not lrun: it sent 'SSH-2.0-OpenSSH_9.2' (an SSH server)"), std::string::npos)
      << launcher.why;
}

TEST(RendezvousServer, IsLookedForAgainWhereAConnectionIsClosed) {
  PatientLoop patient;
  const Fd listener = open_listening_socket(StoreReach::kLoopback, 0);
  int connections = 0;
  const EventLoop::Watch watch = patient.loop.on_readable(listener.get(), [&] {
    (void)Fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (++connections == 3) patient.loop.stop();
  });
  const MetLauncher launcher(patient.loop, port_of_socket(listener.get()), 0, [] {});
  patient.run();
  EXPECT_EQ(launcher.why, "");
  EXPECT_NE(launcher.link.last_error().find("closed the connection before the handshake: is it lrun?"),
            std::string::npos)
      << launcher.link.last_error();
}

TEST(LauncherLink, GivesUpAHostThatDoesNotExist) {
  PatientLoop patient;
  std::string why;
  LauncherLink link(patient.loop,
                    {.host = "nowhere",
                     .port = 1,
                     .connect = 4 * kPatience,
                     .name = Duration(1),
                     .host_option = "--master-addr",
                     .find_address = [](const std::string&) { return std::string(); }},
                    {.received = [](const LauncherMessage&) {},
                     .broken =
                         [&](const std::string& reason, const std::string& hint) {
                           why = reason + " | " + hint;
                           patient.loop.stop();
                         }});
  EXPECT_EQ(link.connect_timeout(), 4 * kPatience) << "it may exist";
  patient.run();
  EXPECT_TRUE(why.starts_with("there is no host 'nowhere' (asked for 1ms) | check the name in '--master-addr'; "))
      << why;
  EXPECT_EQ(link.connect_timeout(), Duration(1));
}

TEST(LauncherLink, GivesUpAHostThatRefusesWhereAListenerIsSaidToBe) {
  PatientLoop patient;
  std::string why;
  const std::uint16_t port = port_of_socket(open_listening_socket(StoreReach::kLoopback, 0).get());
  LauncherLink link(patient.loop,
                    {.host = "127.0.0.1", .port = port, .connect = 4 * kPatience, .name = Duration(1), .is_up = true},
                    {.received = [](const LauncherMessage&) {},
                     .broken =
                         [&](const std::string& reason, const std::string& hint) {
                           why = reason + " | " + hint;
                           patient.loop.stop();
                         }});
  patient.run();
  EXPECT_EQ(why,
            "cannot connect to 127.0.0.1 port " + std::to_string(port) + ": Connection refused (tried for 1ms) | ");
}

TEST(LauncherLink, SaysThatAListenerDoesNotAnswer) {
  PatientLoop patient;
  const Fd listener = open_listening_socket(StoreReach::kLoopback, 0);
  LauncherLink link(
      patient.loop,
      {.host = "127.0.0.1", .port = port_of_socket(listener.get()), .connect = kPatience, .attempt = Duration(500)},
      {.received = [](const LauncherMessage&) {}, .broken = [](const auto&, const auto&) {}});
  Fd taken;
  EventLoop::Watch readable;
  const EventLoop::Watch came = patient.loop.on_readable(listener.get(), [&] {
    taken = Fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    readable = patient.loop.on_readable(taken.get(), [&] {
      readable.cancel();
      patient.loop.stop();
    });
  });
  patient.run();
  EXPECT_EQ(link.last_error(), "") << "a leader may be slow";
  patient.run();
  EXPECT_NE(link.last_error().find("takes connections, and does not answer as lrun does"), std::string::npos)
      << link.last_error();
}

TEST(RendezvousServer, LetsInOnlyWhoKnowsTheSecret) {
  for (const char* const secret : {"hush", "Hush", ""}) {
    PatientLoop patient;
    std::string line;
    RendezvousServer leader(patient.loop, {.reach = StoreReach::kLoopback,
                                           .times = {.join = kPatience, .heartbeat = kPatience},
                                           .secret = "hush",
                                           .rejected = [&](const std::string& text) { line = text; }});
    JoinRecord record = test::node_at("127.0.0.1", 1, 0);
    record.min_nodes = record.max_nodes = 1;
    std::optional<LauncherMessage> told;
    std::string why;
    LauncherLink link(patient.loop,
                      {.host = "127.0.0.1",
                       .port = leader.server().port(),
                       .record = record,
                       .connect = kPatience,
                       .heartbeat = kPatience,
                       .secret = secret},
                      {.received =
                           [&](const LauncherMessage& message) {
                             told = message;
                             patient.loop.stop();
                           },
                       .broken =
                           [&](const std::string& reason, const std::string&) {
                             why = reason;
                             patient.loop.stop();
                           }});
    patient.run();
    if (std::string_view(secret) == "hush") {
      EXPECT_TRUE(told && told->kind == Kind::kBegin) << why;
      EXPECT_EQ(line, "");
    } else {
      EXPECT_FALSE(told);
      EXPECT_NE(why.find("LRUN_JOB_SECRET"), std::string::npos) << why;
      EXPECT_TRUE(line.starts_with("rejected a launcher at 127.0.0.1: it has ")) << line;
    }
  }
}

/// Connections that begin as a launcher does and then say nothing.
std::vector<Fd> silent_connections(std::uint16_t port, int count) {
  std::vector<Fd> foreign_connections;
  for (int i = 0; i < count; ++i) {
    foreign_connections.push_back(connect_to("127.0.0.1", port, std::chrono::steady_clock::now() + kPatience));
    EXPECT_EQ(::send(foreign_connections.back().get(), "l", 1, MSG_NOSIGNAL), 1);
  }
  return foreign_connections;
}

TEST(RendezvousServer, HasRoomForLaunchersHoweverManyForeignConnectionsCome) {
  constexpr int kForeign = 20;
  PatientLoop patient;
  std::vector<std::string> lines;
  RendezvousServer leader(patient.loop, {.reach = StoreReach::kLoopback,
                                         .times = {.join = kPatience, .heartbeat = kPatience},
                                         .max_launchers = 4,
                                         .rejected = [&](const std::string& text) { lines.push_back(text); }});
  const std::uint16_t port = leader.server().port();
  std::optional<MetLauncher> first;
  std::optional<MetLauncher> second;
  const auto told = [&] {
    if (!first->why.empty() || (second && !second->why.empty())) patient.loop.stop();
    if (second && first->was_told(Kind::kBegin) && second->was_told(Kind::kBegin)) patient.loop.stop();
  };
  const std::vector<Fd> before = silent_connections(port, kForeign);
  first.emplace(patient.loop, port, 0, told);
  second.emplace(patient.loop, port, 1, told);
  patient.run();
  ASSERT_TRUE(first->was_told(Kind::kBegin) && second->was_told(Kind::kBegin)) << first->why << second->why;

  const std::vector<Fd> later = silent_connections(port, kForeign);
  const EventLoop::Watch turned_out = patient.loop.on_readable(later.front().get(), [&] { patient.loop.stop(); });
  patient.run();
  EXPECT_TRUE(first->was_told(Kind::kBegin) && second->was_told(Kind::kBegin))
      << "foreign connections pushed out a member";
  leader.report_rejections();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0], "rejected a launcher at 127.0.0.1: it did not join before too many others connected");
  EXPECT_TRUE(lines[1].starts_with("rejected ")) << lines[1];
}

}  // namespace
}  // namespace lrun::launcher
