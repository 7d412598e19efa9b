#include "store/key_value_table.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "store/handle_request.h"

namespace lrun::launcher {
namespace {

using Clients = std::vector<StoreClientId>;
using Barrier = KeyValueTable::Barrier;

constexpr StoreClientId kAnn = 1;
constexpr StoreClientId kBob = 2;
constexpr StoreClientId kCid = 3;

TEST(KeyValueTable, KeepsWhatWasSetLast) {
  KeyValueTable table;
  table.set("k", "first");
  table.set("k", std::string("\0\xff", 2));
  EXPECT_EQ(table.get("k"), std::string("\0\xff", 2));
  EXPECT_EQ(table.get("absent"), "");
}

TEST(KeyValueTable, CountsAnEmptyValueAsAKey) {
  KeyValueTable table;
  table.set("k", "");
  EXPECT_TRUE(table.check({"k"}));
  EXPECT_EQ(table.values().size(), 1U);
}

TEST(KeyValueTable, ComparesAndSetsAsTorchDoes) {
  struct Case {
    const char* what;
    const char* stored;  // null: absent
    const char* expected;
    const char* answer;  // to the desired value 'new'
    const char* after;
  };
  const std::vector<Case> cases = {
      {"absent, nothing expected", nullptr, "", "new", "new"},
      {"absent, a value expected", nullptr, "old", "old", nullptr},
      {"equal", "old", "old", "new", "new"},
      {"different", "old", "other", "old", "old"},
      {"present, nothing expected", "old", "", "old", "old"},
      {"present and empty, nothing expected", "", "", "new", "new"},
  };
  for (const Case& it : cases) {
    KeyValueTable table;
    if (it.stored != nullptr) table.set("k", it.stored);
    EXPECT_EQ(table.compare_set("k", it.expected, "new"), it.answer) << it.what;
    EXPECT_EQ(table.check({"k"}), it.after != nullptr) << it.what;
    EXPECT_EQ(table.get("k"), it.after != nullptr ? it.after : "") << it.what;
  }
}

TEST(KeyValueTable, AddsToDecimalText) {
  KeyValueTable table;
  EXPECT_EQ(table.add("k", 5), 5);
  EXPECT_EQ(table.add("k", -7), -2);
  EXPECT_EQ(table.get("k"), "-2");
  table.set("set", "40");
  EXPECT_EQ(table.add("set", 2), 42);
  table.append("set", "7");
  EXPECT_EQ(table.add("set", 1), 428);
}

TEST(KeyValueTable, WrapsAnAdditionThatOverflows) {
  KeyValueTable table;
  table.add("k", std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(table.add("k", 1), std::numeric_limits<std::int64_t>::min());
}

TEST(KeyValueTable, RefusesToAddToWhatIsNoNumber) {
  KeyValueTable table;
  for (const char* text : {"", "abc", "-", "99999999999999999999"}) {
    table.set("k", text);
    EXPECT_EQ(table.add("k", 1), std::nullopt) << text;
    EXPECT_EQ(table.get("k"), text) << "a refused addition changes nothing";
  }
}

TEST(KeyValueTable, AppendsAndMakesTheKey) {
  KeyValueTable table;
  table.append("k", "ab");
  table.append("k", "cd");
  EXPECT_EQ(table.get("k"), "abcd");
}

TEST(KeyValueTable, DeletesOnceAndTellsNobody) {
  KeyValueTable table;
  table.set("k", "v");
  EXPECT_FALSE(table.wait(kAnn, {"k", "other"}));
  EXPECT_TRUE(table.delete_key("k"));
  EXPECT_FALSE(table.delete_key("k"));
  EXPECT_FALSE(table.check({"k"}));
  EXPECT_EQ(table.take_released(), Clients{});
}

TEST(KeyValueTable, ChecksThatAllKeysExist) {
  KeyValueTable table;
  table.set("a", "");
  EXPECT_TRUE(table.check({"a"}));
  EXPECT_FALSE(table.check({"a", "b"}));
  EXPECT_TRUE(table.check({}));
}

TEST(KeyValueTable, DoesNotWaitForKeysThatExist) {
  KeyValueTable table;
  table.set("a", "1");
  table.queue_push("q", "1");
  EXPECT_TRUE(table.wait(kAnn, {"a", "q"}));
  EXPECT_TRUE(table.wait(kAnn, {}));
  table.set("a", "2");
  EXPECT_EQ(table.take_released(), Clients{});
}

TEST(KeyValueTable, ReleasesWaitersOnEveryKindOfWrite) {
  KeyValueTable table;
  const auto released_by = [&](auto write) {
    EXPECT_FALSE(table.wait(kAnn, {"k"}));
    write();
    Clients released = table.take_released();
    table.delete_key("k");
    while (table.queue_pop("k").length_before > 0) continue;
    return released;
  };
  EXPECT_EQ(released_by([&] { table.set("k", "v"); }), Clients{kAnn}) << "SET";
  EXPECT_EQ(released_by([&] { table.add("k", 1); }), Clients{kAnn}) << "ADD";
  EXPECT_EQ(released_by([&] { table.append("k", "v"); }), Clients{kAnn}) << "APPEND";
  EXPECT_EQ(released_by([&] { table.compare_set("k", "", "v"); }), Clients{kAnn}) << "COMPARE_SET that stores";
  EXPECT_EQ(released_by([&] { table.compare_set("k", "x", "v"); }), Clients{}) << "COMPARE_SET that does not store";
  EXPECT_EQ(released_by([&] { table.queue_push("k", "v"); }), Clients{kAnn}) << "QUEUE_PUSH";
  EXPECT_EQ(released_by([&] { table.arrive(kBob, "k", 1); }), Clients{kAnn}) << "BARRIER";
}

TEST(KeyValueTable, ReleasesAWaiterWhenTheLastOfItsKeysAppears) {
  KeyValueTable table;
  table.set("there", "v");
  EXPECT_FALSE(table.wait(kAnn, {"a", "there", "b", "a"}));
  table.set("a", "1");
  table.set("a", "2");
  EXPECT_EQ(table.take_released(), Clients{});
  table.set("b", "1");
  EXPECT_EQ(table.take_released(), Clients{kAnn});
}

TEST(KeyValueTable, ReleasesAllWaitersOfAKeyInTheOrderTheyCame) {
  KeyValueTable table;
  for (const StoreClientId client : {kCid, kAnn, kBob}) EXPECT_FALSE(table.wait(client, {"k"}));
  table.set("k", "v");
  EXPECT_EQ(table.take_released(), (Clients{kCid, kAnn, kBob}));
}

TEST(KeyValueTable, ForgetsACanceledWait) {
  KeyValueTable table;
  EXPECT_FALSE(table.wait(kAnn, {"k"}));
  EXPECT_FALSE(table.wait(kBob, {"k"}));
  table.cancel_wait(kAnn);
  table.cancel_wait(kCid);
  table.set("k", "v");
  EXPECT_EQ(table.take_released(), Clients{kBob});
}

TEST(KeyValueTable, ReplacesAWaitByTheNextOfTheSameClient) {
  KeyValueTable table;
  EXPECT_FALSE(table.wait(kAnn, {"a"}));
  EXPECT_FALSE(table.wait(kAnn, {"b"}));
  table.set("a", "v");
  EXPECT_EQ(table.take_released(), Clients{});
  table.set("b", "v");
  EXPECT_EQ(table.take_released(), Clients{kAnn});
}

TEST(KeyValueTable, OpensABarrierWhenAllHaveCome) {
  KeyValueTable table;
  EXPECT_EQ(table.arrive(kAnn, "b", 3), Barrier::kWaiting);
  EXPECT_EQ(table.arrive(kBob, "b", 3), Barrier::kWaiting);
  EXPECT_EQ(table.get("b"), "2");
  EXPECT_EQ(table.take_released(), Clients{});
  EXPECT_EQ(table.arrive(kCid, "b", 3), Barrier::kOpen);
  EXPECT_EQ(table.take_released(), (Clients{kAnn, kBob}));
}

TEST(KeyValueTable, LeavesABarrierOpenOnceItWasFull) {
  KeyValueTable table;
  EXPECT_EQ(table.arrive(kAnn, "b", 1), Barrier::kOpen);
  EXPECT_EQ(table.arrive(kBob, "b", 2), Barrier::kOpen);
  EXPECT_EQ(table.take_released(), Clients{});
}

TEST(KeyValueTable, CountsAtABarrierThoseWhoGaveUp) {
  KeyValueTable table;
  EXPECT_EQ(table.arrive(kAnn, "b", 2), Barrier::kWaiting);
  table.cancel_wait(kAnn);
  EXPECT_EQ(table.arrive(kBob, "b", 2), Barrier::kOpen);
  EXPECT_EQ(table.take_released(), Clients{});
}

TEST(KeyValueTable, RefusesABarrierAtAKeyThatIsNoNumber) {
  KeyValueTable table;
  table.set("b", "text");
  EXPECT_EQ(table.arrive(kAnn, "b", 2), Barrier::kNotANumber);
}

TEST(KeyValueTable, GivesQueuedValuesInTheOrderTheyCame) {
  KeyValueTable table;
  table.queue_push("q", "1");
  table.queue_push("q", "2");
  EXPECT_EQ(table.queue_length("q"), 2);
  const auto first = table.queue_pop("q");
  EXPECT_EQ(first.length_before, 2);
  EXPECT_EQ(first.value, "1");
  EXPECT_EQ(table.queue_pop("q").value, "2");
  EXPECT_EQ(table.queue_pop("q").length_before, 0);
  EXPECT_EQ(table.queue_length("q"), 0);
}

TEST(KeyValueTable, KeepsQueuesApartFromKeys) {
  KeyValueTable table;
  table.queue_push("k", "queued");
  EXPECT_TRUE(table.check({"k"})) << "a queue that is not empty counts as existing";
  EXPECT_TRUE(table.values().empty());
  EXPECT_FALSE(table.delete_key("k"));
  table.set("k", "stored");
  EXPECT_EQ(table.get("k"), "stored");
  EXPECT_EQ(table.queue_pop("k").value, "queued");
}

TEST(KeyValueTable, ReleasesOneWaiterForEachPush) {
  KeyValueTable table;
  for (const StoreClientId client : {kAnn, kBob, kCid}) EXPECT_FALSE(table.wait(client, {"q"}));
  table.queue_push("q", "1");
  EXPECT_EQ(table.take_released(), Clients{kAnn});
  table.queue_push("q", "2");
  EXPECT_EQ(table.take_released(), Clients{kBob});
  table.cancel_wait(kCid);
  table.queue_push("q", "3");
  EXPECT_EQ(table.take_released(), Clients{});
}

TEST(KeyValueTable, CountsWhatItHolds) {
  KeyValueTable table;
  table.set("key", "four");
  const std::uint64_t with_key = table.bytes();
  EXPECT_GE(with_key, 7U);
  table.set("key", "12345678");
  EXPECT_EQ(table.bytes(), with_key + 4);
  table.append("key", "9");
  EXPECT_EQ(table.bytes(), with_key + 5);
  EXPECT_EQ(table.compare_set("key", "123456789", ""), "");
  EXPECT_EQ(table.bytes(), with_key - 4);
  (void)table.add("count", 9);
  (void)table.add("count", 1);
  table.queue_push("queue", "one");
  table.queue_push("queue", "two");
  (void)table.queue_pop("queue");
  (void)table.queue_pop("queue");
  EXPECT_TRUE(table.delete_key("count") && table.delete_key("key"));
  EXPECT_EQ(table.bytes(), 0U);
}

TEST(Request, OfAFullStoreIsRefusedWhereItWrites) {
  KeyValueTable table;
  const std::string full = "the store is full: it takes 1000 bytes at most";
  const WhyNoRoom why_no_room = [&](std::uint64_t bytes) {
    return table.bytes() + bytes > 1000 ? full : std::string();
  };
  const auto ask = [&](StoreCommand command, std::vector<std::string> strings) {
    std::string answer;
    StoreRequest request;
    request.command = command;
    request.strings = std::move(strings);
    return handle_request(table, 1, std::move(request), answer, why_no_room);
  };
  EXPECT_EQ(ask(StoreCommand::kSet, {"key", std::string(800, 'x')}), "");
  EXPECT_EQ(ask(StoreCommand::kSet, {"other", std::string(800, 'x')}), full);
  EXPECT_EQ(ask(StoreCommand::kAppend, {"key", std::string(800, 'x')}), full);
  EXPECT_EQ(ask(StoreCommand::kQueuePush, {"queue", std::string(800, 'x')}), full);
  EXPECT_EQ(ask(StoreCommand::kGet, {"key"}), "");
  EXPECT_EQ(ask(StoreCommand::kDeleteKey, {"key"}), "");
  EXPECT_EQ(ask(StoreCommand::kSet, {"other", std::string(800, 'x')}), "") << "there is room again";
}

TEST(Request, WhoseAnswerIsLargeIsRefusedWhereThereIsNoRoom) {
  KeyValueTable table;
  table.set("large", std::string(100'000, 'x'));
  table.set("small", "x");
  const auto ask = [&](StoreCommand command, std::vector<std::string> strings) {
    std::string answer;
    StoreRequest request{.command = command, .strings = std::move(strings)};
    return handle_request(table, 1, std::move(request), answer, [](std::uint64_t) { return "no room"; });
  };
  EXPECT_EQ(ask(StoreCommand::kGet, {"large"}), "no room");
  EXPECT_EQ(ask(StoreCommand::kMultiGet, {"small", "large"}), "no room");
  EXPECT_EQ(ask(StoreCommand::kWait, std::vector<std::string>(20, std::string(8000, 'k'))), "no room");
  EXPECT_EQ(ask(StoreCommand::kGet, {"small"}), "") << "a full store can be read";
  EXPECT_EQ(ask(StoreCommand::kWait, {"missing"}), "");
  EXPECT_EQ(ask(StoreCommand::kListKeys, {}), "");
}

TEST(KeyValueTable, CountsWhatWaitsTake) {
  KeyValueTable table;
  EXPECT_FALSE(table.wait(1, {std::string(1000, 'a'), std::string(1000, 'b')}));
  EXPECT_GE(table.bytes(), 4000U) << "a key is kept twice";
  EXPECT_EQ(table.bytes_of_wait(1), table.bytes()) << "all of it is the wait's";
  table.cancel_wait(1);
  EXPECT_EQ(table.bytes(), 0U);
  EXPECT_FALSE(table.wait(1, {"key"}));
  EXPECT_EQ(table.arrive(2, "barrier", 2), KeyValueTable::Barrier::kWaiting);
  table.set("key", "value");
  EXPECT_EQ(table.arrive(3, "barrier", 2), KeyValueTable::Barrier::kOpen);
  EXPECT_TRUE(table.delete_key("key") && table.delete_key("barrier"));
  EXPECT_EQ(table.bytes(), 0U);
}

}  // namespace
}  // namespace lrun::launcher
