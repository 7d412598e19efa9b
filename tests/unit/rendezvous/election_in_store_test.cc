#include "rendezvous/election_in_store.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/listening_socket.h"
#include "store/protocol.h"

namespace lrun::launcher {
namespace {

constexpr const char* kKey = "/lrun/job/meeting";
constexpr Duration kLease(600);
constexpr Duration kLongLease(2000);  // where a test is late by a part of it on a busy machine
constexpr Duration kNever(3'600'000);

/// A TCPStore that knows COMPARE_SET only, and that a test can make slow, forgetful or dead.
class FakeStore {
 public:
  explicit FakeStore(EventLoop& loop) : loop_(loop), listener_(open_listening_socket(StoreReach::kLoopback, 0)) {
    accepting_ = loop_.on_readable(listener_.get(), [this] { accept(); });
  }

  [[nodiscard]] std::uint16_t port() const { return port_of_socket(listener_.get()); }

  std::map<std::string, std::string> values;
  bool answers = true;                        ///< what it carries out
  int lost_answers = 0;                       ///< so many connections end instead of an answer
  std::function<void()> carried_out = [] {};  ///< a request

 private:
  struct Client {
    Fd socket;
    StoreRequestDecoder decoder = {};
    EventLoop::Watch readable = {};
  };

  void accept() {
    auto client = std::make_shared<Client>();
    client->socket = Fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!client->socket) return;
    client->readable = loop_.on_readable(client->socket.get(), [this, client = client.get()] { read(*client); });
    clients_.push_back(std::move(client));
  }

  void read(Client& client) {
    char buffer[8192];
    const ssize_t count = ::recv(client.socket.get(), buffer, sizeof buffer, 0);
    if (count <= 0) return client.readable.cancel();
    std::string_view bytes(buffer, static_cast<std::size_t>(count));
    while (const auto request = client.decoder.next(bytes)) {
      if (request->command != StoreCommand::kCompareSet) continue;
      std::string answer;
      append_string(answer, carry_out(*request));
      carried_out();
      if (std::exchange(lost_answers, std::max(lost_answers - 1, 0)) > 0) {
        client.readable.cancel();
        return client.socket.reset();
      }
      if (answers) (void)::send(client.socket.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
    }
  }

  std::string carry_out(const StoreRequest& request) {
    const auto& expected = request.strings.at(1);
    const auto found = values.find(request.strings.at(0));
    const bool fits = found == values.end() ? expected.empty() : found->second == expected;
    if (fits) return values[request.strings.at(0)] = request.strings.at(2);
    return found == values.end() ? expected : found->second;
  }

  EventLoop& loop_;
  Fd listener_;
  std::vector<std::shared_ptr<Client>> clients_;
  EventLoop::Watch accepting_;
};

/// One launcher that looks for the meeting.
struct Candidate {
  Candidate(EventLoop& loop, const FakeStore& store, const std::string& token, Duration lease = kLease)
      : election(loop,
                 {.store = {.host = "127.0.0.1", .port = store.port(), .attempt = Duration(100)},
                  .key = kKey,
                  .self = {.token = token, .node = "here"},
                  .lease = lease,
                  .patience = Duration(1000)},
                 {.open = [this](const std::string&) { return port_of_socket(listener.get()); },
                  .close = [this] { told += "closed; "; },
                  .found =
                      [this](const HolderRecord& holder, bool is_self, const std::optional<JobState>& state) {
                        told += (is_self ? "holds" : "found " + holder.token) +
                                (state ? " round " + std::to_string(state->round) : "") + "; ";
                        heard();
                      },
                  .deposed = [this](const std::string& why) { tell("deposed: " + why); },
                  .failed = [this](const std::string& why, const std::string&) { tell("failed: " + why); },
                  .over = [this](const std::string& outcome) { tell("over: '" + outcome + "'"); }}) {}

  void tell(const std::string& text) {
    told += text + "; ";
    heard();
  }

  Fd listener = open_listening_socket(StoreReach::kLoopback, 0);
  std::string told;
  std::function<void()> heard = [] {};
  ElectionInStore election;
};

class ElectionThroughAStore : public ::testing::Test {
 protected:
  /// Runs until `done`, a minute at most.
  void run_until(const std::function<bool()>& done) {
    const auto limit = loop_.after(Duration(60'000), [this] { loop_.stop(); });
    const std::function<void()> look = [&] { done() ? loop_.stop() : void(look_ = loop_.after(Duration(1), look)); };
    look_ = loop_.after(Duration::zero(), look);
    loop_.run();
    look_.cancel();
    ASSERT_TRUE(done());
  }
  void run_until_told(const Candidate& launcher, const std::string& text) {
    run_until([&] { return launcher.told.find(text) != std::string::npos; });
  }
  [[nodiscard]] MeetingRecord stored() {
    return meeting_record_from_json(store_.values[kKey]).value_or(MeetingRecord());
  }
  void store(const MeetingRecord& record) { store_.values[kKey] = to_json(record); }

  /// The meeting of a launcher that does not renew it.
  [[nodiscard]] MeetingRecord of_other(std::uint16_t port) const {
    return {.holder = HolderRecord{"other", "here", "127.0.0.1", port}, .beat = 7, .state = JobState{.round = 3}};
  }

  EventLoop loop_;
  FakeStore store_{loop_};
  EventLoop::Timer look_;
};

TEST_F(ElectionThroughAStore, MakesOneOfManyTheHolderWhomTheOthersFind) {
  std::vector<std::unique_ptr<Candidate>> launchers;
  for (int i = 0; i < 8; ++i) {
    launchers.push_back(std::make_unique<Candidate>(loop_, store_, "launcher " + std::to_string(i)));
    launchers.back()->election.look();
  }
  run_until([&] {
    int settled = 0;
    for (const auto& launcher : launchers) settled += launcher->told.empty() || launcher->told == "closed; " ? 0 : 1;
    return settled == 8;
  });
  int holders = 0;
  for (const auto& launcher : launchers) {
    holders += launcher->election.holds() ? 1 : 0;
    const std::string expected = launcher->election.holds() ? "holds" : "found " + stored().holder->token;
    EXPECT_NE(launcher->told.find(expected), std::string::npos) << launcher->told;
  }
  EXPECT_EQ(holders, 1);
}

TEST_F(ElectionThroughAStore, LeavesTheMeetingToWhoRenewsIt) {
  Candidate holder(loop_, store_, "holder", kLongLease);
  holder.election.look();
  run_until_told(holder, "holds; ");
  Candidate other(loop_, store_, "other", kLongLease);
  // It seems to be out of reach for several leases; but it listens, and goes on to write.
  other.heard = [&] { other.election.look_again(); };
  other.election.look();
  const std::int64_t first = stored().beat;
  run_until([&] { return stored().beat >= first + 8; });
  EXPECT_TRUE(holder.election.holds());
  EXPECT_FALSE(other.election.holds());
}

TEST_F(ElectionThroughAStore, TakesTheMeetingOfWhoIsSilentForALeaseAndWhatItKnew) {
  const Fd listener = open_listening_socket(StoreReach::kLoopback, 0);
  store(of_other(port_of_socket(listener.get())));
  Candidate launcher(loop_, store_, "own");
  launcher.heard = [&] {
    if (!launcher.election.holds()) launcher.election.look_again();
  };
  const auto before = std::chrono::steady_clock::now();
  launcher.election.look();
  run_until_told(launcher, "holds round 3; ");
  EXPECT_GE(std::chrono::steady_clock::now() - before, kLease);
  EXPECT_TRUE(launcher.told.starts_with("found other; ")) << launcher.told;
  EXPECT_EQ(stored().holder->token, "own");
  EXPECT_GT(stored().beat, 7);
}

TEST_F(ElectionThroughAStore, WaitsForNoLeaseWhereThePortProvesThatItsHolderIsGone) {
  std::uint16_t nobody = 0;
  {
    const Fd listener = open_listening_socket(StoreReach::kLoopback, 0);
    nobody = port_of_socket(listener.get());
  }
  store(of_other(nobody));
  Candidate launcher(loop_, store_, "own", kNever);
  launcher.heard = [&] {
    if (!launcher.election.holds()) launcher.election.look_again();
  };
  launcher.election.look();
  run_until_told(launcher, "found other; holds round 3; ");
}

TEST_F(ElectionThroughAStore, LetsGoBeforeItsLeaseIsOverWhereTheStoreIsSilent) {
  Candidate launcher(loop_, store_, "own", kLongLease);
  launcher.election.look();
  run_until_told(launcher, "holds; ");
  SteadyTime written;
  store_.carried_out = [&] {
    if (store_.answers) written = std::chrono::steady_clock::now();  // the last that it knows of
    store_.answers = false;
  };
  run_until_told(launcher, "deposed: no word from the store for 2s: the store at 127.0.0.1 port ");
  // The first that was not answered stands in the store all the same: nobody may replace it before.
  EXPECT_LT(std::chrono::steady_clock::now() - written, kLongLease);
}

TEST_F(ElectionThroughAStore, LetsGoWhenAnotherHoldsTheMeeting) {
  Candidate launcher(loop_, store_, "own");
  launcher.election.look();
  run_until_told(launcher, "holds; ");
  store(of_other(1));
  run_until_told(launcher, "deposed: another launcher holds it now; ");
  EXPECT_EQ(stored(), of_other(1));
}

TEST_F(ElectionThroughAStore, BearsAnswersThatAreLost) {
  Candidate launcher(loop_, store_, "own");
  store_.lost_answers = 3;
  launcher.election.look();
  run_until_told(launcher, "holds; ");
  store_.lost_answers = 3;
  launcher.election.keep({.round = 5});
  run_until([&] { return store_.lost_answers == 0 && stored().state; });
  const std::int64_t beat = stored().beat;
  run_until([&] { return stored().beat > beat + 1; });
  EXPECT_EQ(launcher.told, "holds; ");
  EXPECT_EQ(stored().state->round, 5);
}

TEST_F(ElectionThroughAStore, WritesTheMeetingThatIsHeldIntoAStoreThatWasEmptied) {
  Candidate launcher(loop_, store_, "own");
  launcher.election.look();
  run_until_told(launcher, "holds; ");
  launcher.election.keep({.round = 5});
  run_until([&] { return stored().state.has_value(); });
  store_.values.clear();
  run_until([&] { return !store_.values.empty(); });
  EXPECT_EQ(launcher.told, "holds; ");
  EXPECT_EQ(stored().state->round, 5);
}

TEST_F(ElectionThroughAStore, KeepsWhatTheJobCameToForEver) {
  Candidate launcher(loop_, store_, "own");
  launcher.election.look();
  run_until_told(launcher, "holds; ");
  launcher.election.keep({.round = 1});
  bool released = false;
  launcher.election.release("it failed", [&] { released = true; });
  run_until([&] { return released; });
  Candidate late(loop_, store_, "late");
  late.election.look();
  run_until_told(late, "over: 'it failed'; ");
  EXPECT_EQ(late.told, "over: 'it failed'; ");
}

TEST_F(ElectionThroughAStore, KeepsNothingOfAJobThatDidNotBegin) {
  Candidate launcher(loop_, store_, "own", kNever);
  launcher.election.look();
  run_until_told(launcher, "holds; ");
  bool released = false;
  launcher.election.release("interrupted", [&] { released = true; });
  run_until([&] { return released; });
  Candidate late(loop_, store_, "late", kNever);
  late.election.look();
  run_until_told(late, "holds; ");
}

TEST_F(ElectionThroughAStore, LeavesTheMeetingToTheNextAtOnce) {
  Candidate launcher(loop_, store_, "own", kNever);
  launcher.election.look();
  run_until_told(launcher, "holds; ");
  launcher.election.keep({.round = 4});
  bool released = false;
  launcher.election.release(std::nullopt, [&] { released = true; });
  run_until([&] { return released; });
  Candidate next(loop_, store_, "next", kNever);
  next.election.look();
  run_until_told(next, "holds round 4; ");
}

TEST_F(ElectionThroughAStore, EndsSoonWhereTheStoreIsSilent) {
  Candidate launcher(loop_, store_, "own", kNever);
  launcher.election.look();
  run_until_told(launcher, "holds; ");
  store_.answers = false;
  int released = 0;
  launcher.election.release("done", [&] { ++released; });
  run_until([&] { return released == 1; });
}

TEST_F(ElectionThroughAStore, HoldsNothingWhereItOnlyLooks) {
  Candidate launcher(loop_, store_, "own", kNever);
  launcher.election.only_look();
  launcher.election.look();
  int requests = 0;
  store_.carried_out = [&] { ++requests; };
  run_until([&] { return requests >= 3; });
  EXPECT_EQ(launcher.told, "");
  EXPECT_TRUE(store_.values.empty());
}

TEST_F(ElectionThroughAStore, RefusesWhatLrunDoesNotWrite) {
  for (const char* const value : {"", "{}", "another's", R"({"beat":-1})", R"({"beat":1,"holder":{}})"}) {
    store_.values[kKey] = value;
    Candidate launcher(loop_, store_, "own");
    launcher.election.look();
    run_until_told(launcher, "failed: '/lrun/job/meeting' in the store at 127.0.0.1 port ");
    EXPECT_EQ(store_.values[kKey], value);
  }
}

TEST_F(ElectionThroughAStore, SaysWhatIsWrongWithTheStore) {
  store_.answers = false;
  Candidate launcher(loop_, store_, "own");
  launcher.election.look();
  run_until_told(launcher, " is connected and does not answer; ");
}

TEST(MeetingRecord, IsReadAsItWasWritten) {
  const MeetingRecord held{.holder = HolderRecord{"token", "node", "10.0.0.1", 4000},
                           .beat = 12,
                           .state = JobState{.round = 3, .attempt = 1, .history = "text", .members = {"a", "b"}}};
  const MeetingRecord over{.beat = 1, .state = JobState{.outcome = "it failed"}};
  for (const MeetingRecord& record : {held, over, MeetingRecord()}) {
    EXPECT_EQ(meeting_record_from_json(to_json(record)), record) << to_json(record);
  }
  EXPECT_TRUE(over.is_over());
  EXPECT_FALSE(held.is_over());
}

}  // namespace
}  // namespace lrun::launcher
