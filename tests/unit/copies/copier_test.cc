// Copiers of several nodes, which are processes of their own, on the loopback device.
#include "copies/copier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "copiers.h"
#include "copies/copy_connection.h"
#include "support/raw_socket.h"

namespace lrun::launcher {
namespace {

namespace fs = std::filesystem;
using test::Copies;
using test::CopyingNode;
using test::random_bytes;
using test::Relay;
using ::testing::HasSubstr;
using Owners = std::vector<FileOwner>;

class CopierTest : public ::testing::Test {
 protected:
  CopyingNode& node(const std::string& token, const CopyingNode::Options& options = {}) {
    nodes_.push_back(std::make_unique<CopyingNode>(loop_, token, options));
    return *nodes_.back();
  }
  void wait_until(const std::function<bool()>& is_so) { test::wait_until(loop_, is_so); }
  void wait_for_copies(const CopyingNode& keeper, const Copies& copies) {
    wait_until([&] { return keeper.copies() == copies; });
    EXPECT_EQ(keeper.copies(), copies);
  }
  void wait_for_keeps(const CopyingNode& keeper, const Owners& owners) {
    wait_until([&] { return keeper.keeps == owners; });
    EXPECT_EQ(keeper.keeps, owners);
  }
  std::vector<FetchedFiles> fetch(CopyingNode& to, const CopyingNode& from, const FileOwner& owner) {
    return fetch(to, from.port(), from.copier->key(), owner);
  }
  /// The times of files do not matter here.
  std::vector<FetchedFiles> fetch(CopyingNode& to, int port, const std::string& key, const FileOwner& owner) {
    to.fetched.clear();
    to.copier->tell({.self = {.inherits = {{owner, "127.0.0.1", port, key}}}});
    wait_until([&] { return !to.fetched.empty(); });
    for (FetchedFiles& fetched : to.fetched) fetched.newest_ns = 0;
    return to.fetched;
  }

  EventLoop loop_;
  std::vector<std::unique_ptr<CopyingNode>> nodes_;
};

TEST_F(CopierTest, CopiesWhatIsThereAndWhatIsSavedLater) {
  CopyingNode& a = node("a");
  CopyingNode& b = node("b");
  a.save("before", "text");
  a.copies_to(b);
  wait_for_copies(b, {{"before", "text"}});
  a.save("inner/most/later", "more");
  wait_for_copies(b, {{"before", "text"}, {"inner/most/later", "more"}});
  a.save("inner/most/last", "all");
  wait_for_copies(b, {{"before", "text"}, {"inner/most/last", "all"}, {"inner/most/later", "more"}});
}

TEST_F(CopierTest, CopiesInBothDirectionsWithinTheUsualLimit) {
  CopyingNode& a = node("a", {.most_bytes = {}});
  CopyingNode& b = node("b", {.most_bytes = {}});
  a.copier->tell({.self = {.neighbour = "127.0.0.1",
                           .neighbour_port = b.port(),
                           .neighbour_key = b.copier->key(),
                           .keeps_for = {{"b", 1}}}});
  b.copier->tell({.self = {.neighbour = "127.0.0.1",
                           .neighbour_port = a.port(),
                           .neighbour_key = a.copier->key(),
                           .keeps_for = {{"a", 0}}}});
  a.save("of a", "a");
  b.save("of b", "b");
  wait_for_copies(a, {{"of b", "b"}});
  wait_for_copies(b, {{"of a", "a"}});
}

TEST_F(CopierTest, ReplacesAndRemoves) {
  CopyingNode& a = node("a");
  CopyingNode& b = node("b");
  a.save("x", "old");
  a.save("folder/y", "old");
  a.copies_to(b);
  wait_for_copies(b, {{"folder/y", "old"}, {"x", "old"}});
  a.save("x.tmp", "new");
  fs::rename(a.place("x.tmp"), a.place("x"));
  wait_for_copies(b, {{"folder/y", "old"}, {"x", "new"}});
  fs::remove_all(a.place("folder"));
  wait_for_copies(b, {{"x", "new"}});
  fs::remove_all(a.folder());
  wait_for_copies(b, {});
  a.save("anew", "text");
  wait_for_copies(b, {{"anew", "text"}});
}

TEST_F(CopierTest, KeepsTimesAndModes) {
  CopyingNode& a = node("a");
  CopyingNode& b = node("b");
  a.save("x", "text");
  fs::permissions(a.place("x"), fs::perms(0600));
  fs::last_write_time(a.place("x"), fs::file_time_type::clock::now() - std::chrono::hours(5));
  a.copies_to(b);
  wait_for_copies(b, {{"x", "text"}});
  const fs::path copy = b.copy_folders().at(0) / "x";
  EXPECT_EQ(fs::last_write_time(copy), fs::last_write_time(a.place("x")));
  EXPECT_EQ(fs::status(copy).permissions(), fs::perms(0600));
}

TEST_F(CopierTest, CopiesMoreFilesThanGoAtOnce) {
  CopyingNode& a = node("a");
  CopyingNode& b = node("b");
  Copies all;
  for (int i = 0; i < 1100; ++i) all["file " + std::to_string(i)] = std::to_string(i);
  for (const auto& [name, text] : all) a.save(name, text);
  a.copies_to(b);
  wait_for_copies(b, all);
  CopyingNode& c = node("c");
  EXPECT_EQ(fetch(c, b, {"a", 0}).at(0).files, 1100U);
  EXPECT_EQ(c.files(), all);
}

TEST_F(CopierTest, CopiesAFileOnceItsWriterIsDone) {
  CopyingNode& a = node("a");
  CopyingNode& b = node("b");
  std::ofstream writer(a.place("slow"));
  writer << "all of it" << std::flush;
  a.copies_to(b);
  a.save("other", "text");
  wait_for_copies(b, {{"other", "text"}});
  writer.close();  // no folder changes by that
  wait_for_copies(b, {{"other", "text"}, {"slow", "all of it"}});
}

TEST_F(CopierTest, TellsWhoseFilesItKeepsOnceTheyAreThere) {
  CopyingNode& a = node("a");
  CopyingNode& b = node("b");
  a.save("x", "text");
  EXPECT_EQ(b.keeps, Owners());
  a.copies_to(b, 0);
  wait_for_keeps(b, {{"a", 0}});
  EXPECT_EQ(b.copies(), (Copies{{"x", "text"}})) << "they are there before it says so";
  a.copies_to(b, 3);
  wait_for_keeps(b, {{"a", 3}});
}

TEST_F(CopierTest, FetchesTheFilesOfALostNode) {
  CopyingNode& a = node("a");
  CopyingNode& b = node("b");
  CopyingNode& c = node("c");
  const std::string large = random_bytes(50'000'000);
  a.save("large", large);
  a.save("inner/small", "text");
  a.save("empty", "");
  a.copies_to(b, 4);
  wait_for_keeps(b, {{"a", 4}});
  a.end();
  const std::vector<FetchedFiles> expected{{.node_rank = 4, .files = 3, .bytes = 50'000'004}};
  EXPECT_EQ(fetch(c, b, {"a", 4}), expected);
  const Copies files = c.files();
  EXPECT_TRUE(files.at("large") == large);
  EXPECT_EQ(files.at("inner/small"), "text");
  EXPECT_EQ(files.at("empty"), "");
  EXPECT_EQ(files.size(), 3U);
  EXPECT_EQ(c.names(), std::vector<std::string>{"files"}) << "nothing is left beside them";
  wait_for_keeps(b, {});
}

/// Else states of two nodes would be mixed.
TEST_F(CopierTest, FetchesAllOrNothingWhereANameIsThere) {
  CopyingNode& a = node("a");
  CopyingNode& b = node("b");
  CopyingNode& c = node("c");
  a.save("model", "of a");
  a.save("step", "of a");
  c.save("step", "of c");
  a.copies_to(b, 4);
  wait_for_keeps(b, {{"a", 4}});
  EXPECT_EQ(fetch(c, b, {"a", 4}), std::vector<FetchedFiles>{{.node_rank = 4}});
  EXPECT_EQ(c.files(), (Copies{{"step", "of c"}}));
}

TEST_F(CopierTest, FetchesFromTwoNodesAndFromItself) {
  CopyingNode& a = node("a");
  CopyingNode& b = node("b");
  CopyingNode& c = node("c");
  a.save("of a", "a");
  b.save("of b", "b");
  b.copies_to(a, 1);
  a.copier->tell({.self = {.neighbour = "127.0.0.1",
                           .neighbour_port = c.port(),
                           .neighbour_key = c.copier->key(),
                           .keeps_for = {{"b", 1}}}});
  c.keeps_for({{"a", 0}});
  wait_for_keeps(c, {{"a", 0}});
  wait_for_keeps(a, {{"b", 1}});
  c.copier->tell({.self = {.inherits = {{{"a", 0}, "127.0.0.1", c.port(), c.copier->key()},
                                        {{"b", 1}, "127.0.0.1", a.port(), a.copier->key()}}}});
  wait_until([&] { return !c.fetched.empty(); });
  for (FetchedFiles& fetched : c.fetched) fetched.newest_ns = 0;
  const std::vector<FetchedFiles> expected{{.node_rank = 0, .files = 1, .bytes = 1},
                                           {.node_rank = 1, .files = 1, .bytes = 1}};
  EXPECT_EQ(c.fetched, expected);
  EXPECT_EQ(c.files(), (Copies{{"of a", "a"}, {"of b", "b"}}));
}

TEST_F(CopierTest, SaysWhyItGotNothing) {
  CopyingNode& a = node("a");
  CopyingNode& b = node("b");
  const std::vector<FetchedFiles> unknown{{.node_rank = 2, .why_not = "it has no copies"}};
  EXPECT_EQ(fetch(a, b, {"another", 2}), unknown);
  const int port = b.port();
  b.end();
  EXPECT_THAT(fetch(a, port, "", {"another", 2}).at(0).why_not, HasSubstr("Connection refused"));
  EXPECT_EQ(a.files(), Copies());
}

TEST_F(CopierTest, SaysThatAFetchWasCutAndLeavesNothing) {
  CopyingNode& a = node("a");
  CopyingNode& b = node("b");
  CopyingNode& c = node("c");
  a.save("large", random_bytes(5'000'000));
  a.copies_to(b);
  wait_for_keeps(b, {{"a", 0}});
  Relay relay(loop_, b.port());
  relay.drop_behind(1'000'000);
  const FetchedFiles got = fetch(c, relay.port(), b.copier->key(), {"a", 0}).at(0);
  EXPECT_EQ(got.files, 0U);
  EXPECT_EQ(got.bytes, 0U);
  EXPECT_NE(got.why_not, "");
  EXPECT_EQ(c.files(), Copies());
  EXPECT_EQ(c.names(), std::vector<std::string>{"files"});
}

TEST_F(CopierTest, GivesNothingToANodeThatDoesNotKnowTheSecret) {
  CopyingNode& a = node("a", {.secret = "the secret"});
  CopyingNode& b = node("b", {.secret = "the secret"});
  a.save("x", "text");
  a.copies_to(b);
  wait_for_keeps(b, {{"a", 0}});
  for (const std::string secret : {"another", ""}) {
    CopyingNode& c = node("c", {.secret = secret});
    const FetchedFiles got = fetch(c, b, {"a", 0}).at(0);
    EXPECT_EQ(got.files, 0U) << secret;
    EXPECT_NE(got.why_not, "") << secret;
    EXPECT_EQ(c.files(), Copies()) << secret;
  }
  CopyingNode& c = node("c", {.secret = "the secret"});
  EXPECT_EQ(fetch(c, b, {"a", 0}).at(0).files, 1U);
}

TEST_F(CopierTest, GivesNothingToThoseWhoDoNotKnowItsKey) {
  CopyingNode& a = node("a");
  CopyingNode& b = node("b");
  CopyingNode& c = node("c");
  a.save("x", "text");
  a.copies_to(b);
  wait_for_keeps(b, {{"a", 0}});
  EXPECT_NE(b.copier->key(), c.copier->key());
  for (const std::string& key : {c.copier->key(), std::string()}) {
    EXPECT_NE(fetch(c, b.port(), key, {"a", 0}).at(0).why_not, "");
    EXPECT_EQ(c.files(), Copies());
  }
}

TEST_F(CopierTest, TakesNothingFromANodeThatDoesNotKnowTheSecret) {
  CopyingNode& a = node("a", {.secret = "another"});
  CopyingNode& b = node("b", {.secret = "the secret"});
  CopyingNode& c = node("c", {.secret = "the secret"});
  a.save("of a", "text");
  c.save("of c", "text");
  Relay relay(loop_, b.port());
  a.copies_to(relay.port(), b.copier->key());
  b.keeps_for({{"a", 0}});
  wait_until([&] { return relay.ended() > 0; });
  c.copies_to(b);
  wait_for_copies(b, {{"of c", "text"}});
}

TEST_F(CopierTest, KeepsNoMoreThanItMayAndSaysSoOnce) {
  CopyingNode& a = node("a");
  CopyingNode& b = node("b", {.most_bytes = 2000});
  a.save("small", std::string(500, 'x'));
  a.copies_to(b);
  wait_for_keeps(b, {{"a", 0}});
  a.save("large", std::string(5000, 'x'));
  wait_until([&] { return !a.refusals.empty(); });
  EXPECT_EQ(a.refusals, std::vector<std::string>{"it keeps 2 KiB of other nodes' files at most"});
  wait_for_keeps(b, {});
  EXPECT_EQ(b.copies(), Copies()) << "nobody is to go on from an old state";
  a.save("large", std::string(6000, 'x'));
  a.save("large", "now small");
  wait_for_copies(b, {{"large", "now small"}, {"small", std::string(500, 'x')}});
  EXPECT_EQ(a.refusals.size(), 1U);
}

TEST_F(CopierTest, CountsTheStateThatWillBeThere) {
  CopyingNode& a = node("a");
  CopyingNode& b = node("b", {.most_bytes = 2000});
  a.save("step-1", std::string(1500, 'x'));
  a.copies_to(b);
  wait_for_keeps(b, {{"a", 0}});
  fs::rename(a.place("step-1"), a.outer() / "away");
  a.save("step-2", std::string(1600, 'y'));
  wait_for_copies(b, {{"step-2", std::string(1600, 'y')}});
  a.save("step-3", std::string(500, 'z'));
  wait_until([&] { return !a.refusals.empty(); });
  EXPECT_EQ(b.copies(), Copies());
}

/// Else what a program removes meanwhile would stay, and be in the way for ever.
TEST_F(CopierTest, ForgetsWhatIsRemovedAfterARefusal) {
  CopyingNode& a = node("a");
  CopyingNode& b = node("b", {.most_bytes = 2000});
  a.save("first", std::string(500, 'x'));
  a.copies_to(b);
  wait_for_keeps(b, {{"a", 0}});
  a.save("large", std::string(5000, 'x'));
  wait_until([&] { return !a.refusals.empty(); });
  fs::remove(a.place("large"));
  fs::remove(a.place("first"));
  a.save("second", "text");
  wait_for_copies(b, {{"second", "text"}});
}

TEST_F(CopierTest, ConnectsAgainAndSendsWhatChangedMeanwhile) {
  CopyingNode& a = node("a");
  CopyingNode& b = node("b");
  Relay relay(loop_, b.port());
  a.save("stays", "text");
  a.save("goes", "text");
  a.copies_to(relay.port(), b.copier->key());
  b.keeps_for({{"a", 0}});
  wait_for_copies(b, {{"goes", "text"}, {"stays", "text"}});
  relay.drop_all();
  fs::remove(a.place("goes"));
  a.save("comes", "text");
  wait_for_copies(b, {{"comes", "text"}, {"stays", "text"}});
  EXPECT_EQ(relay.accepted(), 2);
  wait_for_keeps(b, {{"a", 0}});
  EXPECT_EQ(b.copy_folders().size(), 1U);
}

TEST_F(CopierTest, SendsAFileAgainThatWasCut) {
  CopyingNode& a = node("a");
  CopyingNode& b = node("b");
  Relay relay(loop_, b.port());
  const std::string large = random_bytes(5'000'000);
  a.save("large", "old");
  a.copies_to(relay.port(), b.copier->key());
  b.keeps_for({{"a", 0}});
  wait_for_copies(b, {{"large", "old"}});
  relay.drop_behind(1'000'000);
  a.save("x.tmp", large);
  fs::rename(a.place("x.tmp"), a.place("large"));
  wait_until([&] { return relay.ended() > 0; });
  EXPECT_EQ(b.copies(), (Copies{{"large", "old"}})) << "half a file is not seen";
  wait_until([&] { return b.copies()["large"].size() == large.size(); });
  EXPECT_TRUE(b.copies()["large"] == large);
}

TEST_F(CopierTest, ConnectsAgainToSayThatAllIsGone) {
  CopyingNode& a = node("a");
  CopyingNode& b = node("b");
  Relay relay(loop_, b.port());
  a.save("goes", "text");
  a.copies_to(relay.port(), b.copier->key());
  b.keeps_for({{"a", 0}});
  wait_for_copies(b, {{"goes", "text"}});
  relay.drop_all();
  fs::remove(a.place("goes"));
  wait_for_copies(b, {});
}

TEST_F(CopierTest, MovesItsCopiesToAnotherNeighbour) {
  CopyingNode& a = node("a");
  CopyingNode& b = node("b");
  CopyingNode& c = node("c");
  a.save("x", "text");
  a.copies_to(b);
  wait_for_keeps(b, {{"a", 0}});
  a.copies_to(c);
  wait_for_copies(c, {{"x", "text"}});
  wait_for_keeps(b, {});
  EXPECT_EQ(b.copies(), Copies());
}

TEST_F(CopierTest, OffersCopiesOfALostNodeInOneRoundAndThenRemovesThem) {
  CopyingNode& a = node("a");
  CopyingNode& b = node("b");
  a.save("x", "text");
  a.copies_to(b);
  wait_for_keeps(b, {{"a", 0}});
  a.end();
  b.keeps_for({});
  wait_for_keeps(b, {});  // the leader has been told of them
  EXPECT_EQ(b.copies(), (Copies{{"x", "text"}}));
  CopyingNode& c = node("c");
  EXPECT_EQ(fetch(c, b, {"a", 0}).at(0).files, 1U) << "they are there in this round";
  b.keeps_for({});
  wait_until([&] { return b.names() == std::vector<std::string>{"files"}; });
}

/// Its connection may be there for long: a host that has lost its power ends none.
TEST_F(CopierTest, OffersNoCopiesOfANodeWhoseNeighbourItIsNoMore) {
  CopyingNode& a = node("a");
  CopyingNode& b = node("b");
  a.save("x", "text");
  a.copies_to(b);
  wait_for_keeps(b, {{"a", 0}});
  b.keeps_for({});
  wait_for_keeps(b, {});
  a.save("y", "text");
  wait_for_copies(b, {{"x", "text"}, {"y", "text"}});
  EXPECT_EQ(b.keeps, Owners());
  b.keeps_for({});
  wait_until([&] { return b.copies().empty(); });
  // It is the neighbour again, and the other node connects again by itself.
  b.keeps_for({{"a", 2}});
  wait_for_keeps(b, {{"a", 2}});
  EXPECT_EQ(b.copies(), (Copies{{"x", "text"}, {"y", "text"}}));
}

/// The launcher of the other node may be earlier than the one here.
TEST_F(CopierTest, TakesFilesBeforeItKnowsThatItIsTheNeighbour) {
  CopyingNode& a = node("a");
  CopyingNode& b = node("b");
  a.save("x", "text");
  a.copies_to(b.port(), b.copier->key());
  wait_for_copies(b, {{"x", "text"}});
  EXPECT_EQ(b.keeps, Owners());
  b.keeps_for({{"a", 0}});
  wait_for_keeps(b, {{"a", 0}});
}

TEST_F(CopierTest, BeginsAnewAfterAKill) {
  CopyingNode& a = node("a");
  CopyingNode& b = node("b");
  a.save("x", "text");
  a.copies_to(b);
  wait_for_keeps(b, {{"a", 0}});
  ::kill(b.copier->pid(), SIGKILL);
  wait_until([&] { return b.has_ended; });
  b.begin_again();
  b.keeps_for({{"a", 0}});
  wait_for_keeps(b, {{"a", 0}});
  EXPECT_EQ(b.copies(), (Copies{{"x", "text"}}));
  EXPECT_EQ(b.copy_folders().size(), 1U) << "those of the killed one are gone";
}

TEST_F(CopierTest, IsEndedByNoSignalOfAManager) {
  CopyingNode& a = node("a");
  CopyingNode& b = node("b");
  a.save("x", "text");
  a.copies_to(b);
  wait_for_copies(b, {{"x", "text"}});
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM}) ::kill(a.copier->pid(), number);
  a.save("y", "text");
  wait_for_copies(b, {{"x", "text"}, {"y", "text"}});
}

TEST_F(CopierTest, IsNotHarmedByGarbage) {
  CopyingNode& a = node("a");
  CopyingNode& b = node("b");
  a.save("x", "text");
  for (const std::string& garbage : {random_bytes(1'000'000), std::string("GET / HTTP/1.1\r\n\r\n"),
                                     std::string(100'000, '\n'), std::string("lrun-job/8 short open\n")}) {
    RawSocket socket(static_cast<std::uint16_t>(b.port()));
    (void)socket.send(garbage);
    EXPECT_TRUE(socket.is_closed());
  }
  a.copies_to(b);
  wait_for_copies(b, {{"x", "text"}});
}

TEST_F(CopierTest, TakesNoFileThatWouldLieElsewhere) {
  CopyingNode& b = node("b");
  std::string why;
  std::unique_ptr<CopyConnection> bad;
  const auto ready = [&] {
    bad->send({.kind = CopyMessage::Kind::kOwner, .text = "bad"});
    bad->send({.kind = CopyMessage::Kind::kFile, .text = "../x"});
  };
  bad =
      std::make_unique<CopyConnection>(loop_, test::connected_to(b.port()), Handshake::Side::kLauncher, b.copier->key(),
                                       CopyConnection::Events{.ready = ready,
                                                              .received = [](const CopyItem&) {},
                                                              .sent = [] {},
                                                              .broken = [&](const std::string& text) { why = text; }});
  wait_until([&] { return !why.empty(); });
  EXPECT_FALSE(fs::exists(b.outer() / "x"));
  EXPECT_NE(b.copier->pid(), 0);
}

TEST_F(CopierTest, EndsWithItsObject) {
  CopyingNode& a = node("a");
  const pid_t pid = a.copier->pid();
  const int port = a.port();
  ASSERT_GT(pid, 0);
  a.end();
  EXPECT_EQ(::kill(pid, 0), -1);
  EXPECT_EQ(errno, ESRCH) << "and it was reaped";
  EXPECT_ANY_THROW(RawSocket(static_cast<std::uint16_t>(port)));
  EXPECT_EQ(a.names(), std::vector<std::string>{"files"});
}

TEST_F(CopierTest, IsKnownToHaveEnded) {
  CopyingNode& a = node("a");
  ::kill(a.copier->pid(), SIGKILL);
  wait_until([&] { return a.has_ended; });
  wait_until([&] { return a.copier->pid() == 0; });
  a.copier->tell({});
}

}  // namespace
}  // namespace lrun::launcher
