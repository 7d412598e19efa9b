// The store as its clients see it: table, server and client together, over loopback.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "support/patience.h"
#include "support/store_client.h"
#include "support/store_server_thread.h"

namespace lrun::launcher {
namespace {

using namespace std::chrono_literals;

using Keys = std::vector<std::string>;

using test::soon;
SteadyTime now() { return std::chrono::steady_clock::now(); }

class StoreContract : public testing::Test {
 protected:
  StoreClient connect() { return {"127.0.0.1", server_.port(), soon()}; }

  StoreServerThread server_;
  StoreClient client_ = connect();
  StoreClient other_ = connect();
};

TEST_F(StoreContract, SharesWhatOneClientSet) {
  other_.set("k", "first", soon());
  other_.set("k", "second", soon());
  EXPECT_EQ(client_.get("k", soon()), "second");
  EXPECT_EQ(client_.get_now("absent", soon()), "");
}

TEST_F(StoreContract, KeepsWhatAClientSetBeforeItLeft) {
  {
    StoreClient writer = connect();
    writer.set("k", "kept", soon());
  }
  EXPECT_EQ(client_.get("k", soon()), "kept");
}

TEST_F(StoreContract, TakesAnyBytesOfAnyLengthUpToTheLimit) {
  const Keys values = {"", std::string("\0\xff\n", 3), std::string(1'000'000, 'x'), std::string(kMaxValueBytes, 'z')};
  for (const std::string& value : values) {
    client_.set("k", value, soon());
    EXPECT_TRUE(other_.get("k", soon()) == value) << value.size() << " bytes";
  }
  const std::string longest_key(kMaxKeyBytes, 'k');
  client_.set(longest_key, "v", soon());
  EXPECT_EQ(other_.get(longest_key, soon()), "v");
}

TEST_F(StoreContract, Counts) {
  EXPECT_EQ(client_.add("k", 5, soon()), 5);
  EXPECT_EQ(other_.add("k", -7, soon()), -2);
  EXPECT_EQ(client_.get("k", soon()), "-2");
}

TEST_F(StoreContract, ComparesAndSets) {
  EXPECT_EQ(client_.compare_set("k", "old", "new", soon()), "old") << "absent, and a value was expected";
  EXPECT_FALSE(client_.check({"k"}, soon()));
  EXPECT_EQ(client_.compare_set("k", "", "first", soon()), "first");
  EXPECT_EQ(client_.compare_set("k", "", "second", soon()), "first");
  EXPECT_EQ(client_.compare_set("k", "first", "second", soon()), "second");
}

TEST_F(StoreContract, AppendsAndDeletesAndChecks) {
  client_.append("k", "ab", soon());
  client_.append("k", "cd", soon());
  EXPECT_EQ(other_.get("k", soon()), "abcd");
  EXPECT_TRUE(client_.check({"k"}, soon()));
  EXPECT_TRUE(client_.delete_key("k", soon()));
  EXPECT_FALSE(client_.delete_key("k", soon()));
  EXPECT_FALSE(client_.check({"k"}, soon()));
}

TEST_F(StoreContract, SetsAndGetsSeveralKeysAtOnce) {
  client_.multi_set({{"a", "1"}, {"b", ""}, {"c", "3"}}, soon());
  EXPECT_EQ(other_.multi_get_now({"c", "absent", "b", "a"}, soon()), (Keys{"3", "", "", "1"}));
  EXPECT_EQ(other_.num_keys(soon()), 3);
  Keys keys = other_.list_keys(soon());
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(keys, (Keys{"a", "b", "c"}));
}

TEST_F(StoreContract, TakesAsManyKeysInOneRequestAsTheLimitSays) {
  std::vector<std::pair<std::string, std::string>> pairs;
  Keys keys;
  for (std::uint64_t i = 0; i < kMaxKeysPerRequest; ++i) {
    keys.push_back(std::to_string(i));
    pairs.emplace_back(keys.back(), keys.back());
  }
  client_.multi_set(pairs, soon());
  EXPECT_TRUE(other_.check(keys, soon()));
  EXPECT_TRUE(other_.multi_get_now(keys, soon()) == keys);
}

TEST_F(StoreContract, WaitsUntilTheLastKeyAppears) {
  auto waiting = std::async(std::launch::async, [this] { return client_.wait({"a", "b"}, soon()); });
  other_.set("a", "1", soon());
  other_.set("b", "1", soon());
  EXPECT_TRUE(waiting.get());
  EXPECT_TRUE(client_.wait({"a", "b"}, now())) << "keys that exist need no time";
}

TEST_F(StoreContract, TellsThatAKeyDidNotComeAndIsUsableAfterwards) {
  EXPECT_FALSE(client_.wait({"k"}, now() + 5ms));
  EXPECT_EQ(client_.get("k", now() + 5ms), std::nullopt);
  other_.set("k", "late", soon());
  EXPECT_EQ(client_.get("k", soon()), "late") << "the canceled waits must have left no answer behind";
}

TEST_F(StoreContract, StaysInStepWhenAKeyCrossesTheCancellation) {
  for (int round = 0; round < 200; ++round) {
    const std::string key = "k" + std::to_string(round);
    auto writing = std::async(std::launch::async, [&] { other_.set(key, "v", soon()); });
    const bool came = client_.wait({key}, now());
    writing.get();
    EXPECT_EQ(client_.get_now(key, soon()), "v") << "round " << round << ", the key " << (came ? "came" : "was late");
  }
}

TEST_F(StoreContract, HoldsABarrierUntilAllHaveCome) {
  EXPECT_FALSE(client_.barrier("lonely", 2, now() + 5ms));
  auto waiting = std::async(std::launch::async, [this] { return client_.barrier("b", 2, soon()); });
  EXPECT_TRUE(other_.barrier("b", 2, soon()));
  EXPECT_TRUE(waiting.get());
  EXPECT_EQ(client_.get_now("b", soon()), "2");
}

TEST_F(StoreContract, QueuesValues) {
  EXPECT_EQ(client_.queue_pop_now("q", soon()), std::nullopt);
  client_.queue_push("q", "1", soon());
  client_.queue_push("q", "", soon());
  EXPECT_EQ(other_.queue_length("q", soon()), 2);
  EXPECT_TRUE(other_.wait({"q"}, now())) << "a queue that is not empty exists";
  EXPECT_EQ(other_.queue_pop_now("q", soon()), "1");
  EXPECT_EQ(other_.queue_pop_now("q", soon()), "");
  EXPECT_EQ(other_.queue_pop_now("q", soon()), std::nullopt);
}

TEST_F(StoreContract, CountsTheAdditionsOfManyClientsOnce) {
  constexpr int kClients = 8;
  constexpr int kAdditions = 200;
  std::vector<std::thread> threads;
  for (int i = 0; i < kClients; ++i) {
    threads.emplace_back([this] {
      StoreClient client = connect();
      for (int n = 0; n < kAdditions; ++n) client.add("k", 1, soon());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(client_.add("k", 0, soon()), kClients * kAdditions);
}

TEST_F(StoreContract, TakesManyClientsThroughABarrier) {
  constexpr int kClients = 256;
  std::vector<std::thread> threads;
  std::atomic<int> passed{0};
  for (int i = 0; i < kClients; ++i) {
    threads.emplace_back([this, &passed] {
      StoreClient client = connect();
      if (client.barrier("b", kClients, soon()) && client.get_now("b", soon()) == std::to_string(kClients)) ++passed;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(passed, kClients);
}

TEST(StoreClientTest, WaitsForAStoreThatStartsLater) {
  std::uint16_t port = 0;
  {
    const Fd socket = open_listening_socket(StoreReach::kLoopback, 0);
    port = port_of_socket(socket.get());
  }
  auto connecting =
      std::async(std::launch::async, [port] { return StoreClient("127.0.0.1", port, soon()).add("k", 1, soon()); });
  StoreServerThread server({.port = port});
  EXPECT_EQ(connecting.get(), 1);
}

}  // namespace
}  // namespace lrun::launcher
