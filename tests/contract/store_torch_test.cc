// The store as LibTorch's own client sees it, and our answers beside those of torch's own server.
#include <gtest/gtest.h>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <chrono>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "support/raw_socket.h"
#include "support/store_server_thread.h"

namespace lrun::launcher {
namespace {

using namespace std::chrono_literals;

using Bytes = std::vector<std::uint8_t>;
using Torch = c10::intrusive_ptr<c10d::TCPStore>;

Bytes bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

Torch connect_torch(std::uint16_t port, std::chrono::milliseconds timeout = 20s) {
  c10d::TCPStoreOptions options;
  options.port = port;
  options.waitWorkers = false;
  options.timeout = timeout;
  return c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
}

class StoreOfTorch : public testing::Test {
 protected:
  StoreServerThread server_;
  Torch store_ = connect_torch(server_.port());
};

TEST_F(StoreOfTorch, SetsAndGetsAndCounts) {
  store_->set("k", bytes_of("v"));
  EXPECT_EQ(connect_torch(server_.port())->get("k"), bytes_of("v"));
  EXPECT_EQ(store_->add("n", 5), 5);
  EXPECT_EQ(store_->add("n", -7), -2);
  EXPECT_EQ(store_->get("n"), bytes_of("-2"));
  const Bytes large(8 << 20, 'x');
  store_->set("large", large);
  EXPECT_EQ(store_->get("large"), large);
}

TEST_F(StoreOfTorch, ComparesChecksDeletesAndLists) {
  EXPECT_EQ(store_->compareSet("k", bytes_of("old"), bytes_of("new")), bytes_of("old"));
  EXPECT_FALSE(store_->check({"k"}));
  EXPECT_EQ(store_->compareSet("k", {}, bytes_of("first")), bytes_of("first"));
  EXPECT_EQ(store_->compareSet("k", bytes_of("first"), bytes_of("second")), bytes_of("second"));
  EXPECT_TRUE(store_->check({"k"}));
  EXPECT_EQ(store_->getNumKeys(), 1);
  EXPECT_EQ(store_->listKeys(), std::vector<std::string>{"k"});
  EXPECT_TRUE(store_->deleteKey("k"));
  EXPECT_FALSE(store_->deleteKey("k"));
}

TEST_F(StoreOfTorch, AppendsAndHandlesSeveralKeysAtOnce) {
  EXPECT_TRUE(store_->hasExtendedApi());
  store_->append("k", bytes_of("ab"));
  store_->append("k", bytes_of("cd"));
  store_->multiSet({"a", "b"}, {bytes_of("1"), bytes_of("")});
  EXPECT_EQ(store_->multiGet({"b", "k", "a"}), (std::vector<Bytes>{{}, bytes_of("abcd"), bytes_of("1")}));
}

TEST_F(StoreOfTorch, Queues) {
  store_->queuePush("q", bytes_of("1"));
  store_->queuePush("q", bytes_of("2"));
  EXPECT_EQ(store_->queueLen("q"), 2);
  EXPECT_EQ(store_->queuePop("q", true), bytes_of("1"));
  EXPECT_EQ(store_->queuePop("q", false), bytes_of("2"));
  EXPECT_THROW(store_->queuePop("q", false), std::exception) << "the queue is empty";
}

TEST_F(StoreOfTorch, TimesOutAndIsUsableAfterwards) {
  for (int round = 0; round < 3; ++round) {
    EXPECT_THROW(store_->wait({"absent"}, 20ms), std::exception);
    EXPECT_EQ(store_->add("n", 1), round + 1) << "the canceled wait must have left no answer behind";
  }
}

TEST_F(StoreOfTorch, ServesManyClientsAtOnce) {
  constexpr int kClients = 16;
  std::vector<std::thread> threads;
  std::vector<Bytes> seen(kClients);
  for (int rank = 0; rank < kClients; ++rank) {
    threads.emplace_back([this, rank, &seen] {
      const Torch store = connect_torch(server_.port());
      const std::string key = std::to_string(rank);
      store->set(key, bytes_of(key));
      for (int peer = 0; peer < kClients; ++peer) store->wait({std::to_string(peer)});
      seen[static_cast<std::size_t>(rank)] = store->get(std::to_string((rank + 1) % kClients));
      if (store->add("arrived", 1) == kClients) store->set("all", bytes_of("1"));
      store->wait({"all"});
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int rank = 0; rank < kClients; ++rank) {
    EXPECT_EQ(seen[static_cast<std::size_t>(rank)], bytes_of(std::to_string((rank + 1) % kClients)));
  }
}

TEST_F(StoreOfTorch, CountsWorkersThatJoinAWorldOfKnownSize) {
  c10d::TCPStoreOptions options;
  options.port = server_.port();
  options.numWorkers = 2;
  options.waitWorkers = true;
  options.timeout = 20s;
  const c10d::TCPStore first("127.0.0.1", options);
  const c10d::TCPStore second("127.0.0.1", options);
  RawSocket client(server_.port());
  ASSERT_TRUE(client.send_handshake());
  ASSERT_TRUE(client.send({StoreCommand::kGet, {"init/"}}));
  EXPECT_EQ(client.receive(9), std::string("\1\0\0\0\0\0\0\0"
                                           "2",
                                           9));
}

/// A request that never waits, on few keys, so that they meet each other.
StoreRequest random_request(std::minstd_rand& random) {
  const auto pick = [&random](std::uint32_t count) { return static_cast<std::uint32_t>(random() / 7 % count); };
  const auto key = [&] { return "/" + std::to_string(pick(4)); };
  const auto value = [&] { return std::to_string(pick(3)); };
  switch (pick(12)) {
    case 0:
      return {StoreCommand::kSet, {key(), value()}};
    case 1:
      return {StoreCommand::kCompareSet, {key(), pick(2) == 0 ? "" : value(), value()}};
    case 2:
      return {StoreCommand::kGet, {key()}};
    case 3:
      return {StoreCommand::kAdd, {key()}, std::uint64_t{pick(9)} - 4};
    case 4:
      return {StoreCommand::kCheck, {key(), key()}};
    case 5:
      return {StoreCommand::kNumKeys};
    case 6:
      return {StoreCommand::kDeleteKey, {key()}};
    case 7:
      return {StoreCommand::kAppend, {key(), value()}};
    case 8:
      return {StoreCommand::kMultiGet, {key(), key(), key()}};
    case 9:
      return {StoreCommand::kMultiSet, {key(), value(), key(), value()}};
    case 10:
      return {StoreCommand::kQueuePush, {key(), value()}};
    default:
      return {pick(2) == 0 ? StoreCommand::kQueuePop : StoreCommand::kQueueLength, {key()}};
  }
}

/// The answers to `bytes`: PING at the end says that all have come.
std::string answers_of(std::uint16_t port, const std::string& hello, const std::string& bytes) {
  RawSocket client(port);
  client.send(hello);
  client.send(bytes);
  std::string end;
  append_request(end, {StoreCommand::kPing, {}, 0x2A2B2C2D});
  client.send(end);
  const std::string mark = "\x2D\x2C\x2B\x2A";
  std::string answers;
  while (!answers.ends_with(mark)) {
    const std::string byte = client.receive(1);
    if (byte.empty()) return answers + " (closed)";
    answers += byte;
  }
  return answers;
}

TEST(StoreBesideTorch, GivesTheAnswersOfTorchesOwnServer) {
  std::string hello;
  append_request(hello, {StoreCommand::kValidate, {}, kStoreMagic});
  for (std::uint32_t seed = 1; seed <= 3; ++seed) {
    c10d::TCPStoreOptions options;
    options.port = 0;
    options.isServer = true;
    options.waitWorkers = false;
    const c10d::TCPStore theirs("127.0.0.1", options);
    StoreServerThread ours;
    std::minstd_rand random(seed);
    std::string bytes;
    for (int i = 0; i < 3000; ++i) append_request(bytes, random_request(random));
    EXPECT_EQ(answers_of(ours.port(), hello, bytes), answers_of(theirs.getPort(), hello, bytes)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace lrun::launcher
