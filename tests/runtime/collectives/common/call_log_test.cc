// How ranks of a backend that does not compare their calls find out that those differ.

#include "runtime/collectives/common/call_log.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace lrun::detail {
namespace {

using namespace std::chrono_literals;

Call reduce_of(std::int64_t count, std::uint64_t tag = 0) {
  Call call;
  call.operation = Call::Operation::kAllReduce;
  call.dtype = static_cast<std::int32_t>(at::kFloat);
  call.op = static_cast<std::int32_t>(ReduceOp::kSum);
  call.count = call.sizes[0] = count;
  call.dimensions = 1;
  call.tag = tag;
  return call;
}

/// The logs of a group, with what a store would keep between them.
struct Group {
  explicit Group(int world_size) {
    for (int rank = 0; rank < world_size; ++rank) {
      logs.push_back(std::make_unique<CallLog>(
          rank, world_size, [this, rank](const std::string& text) { ++told, said[rank] = text; },
          [this](int other) -> CallLog::Answer {
            ++heard;
            if (unreachable.contains(other)) return {.is_known = false, .text = std::nullopt};
            const auto found = said.find(other);
            return {.text = found == said.end() ? std::nullopt : std::optional(found->second)};
          }));
    }
  }

  std::map<int, std::string> said;
  std::set<int> unreachable;  // ranks of which the store does not answer
  int told = 0;
  int heard = 0;
  std::vector<std::unique_ptr<CallLog>> logs;
};

TEST(CallHistory, ComesBackFromItsText) {
  CallHistory history{17, {reduce_of(3, std::uint64_t{1} << 63 | 5), Call()}};
  history.calls[0].root = 2;
  EXPECT_EQ(CallHistory::parse(history.text()), history);
  EXPECT_EQ(history.last(), 18U);
  EXPECT_EQ(CallHistory::parse(CallHistory().text()), CallHistory());
  EXPECT_FALSE(CallHistory::parse(""));
  EXPECT_FALSE(CallHistory::parse("no number"));
  EXPECT_FALSE(CallHistory::parse("1\n2 3"));
}

TEST(CallLog, FindsTheFirstCallOnWhichRanksDiffer) {
  Group group(3);
  for (const auto& log : group.logs) log->add(reduce_of(8));
  for (int rank = 0; rank < 3; ++rank) group.logs[static_cast<std::size_t>(rank)]->add(reduce_of(rank == 2 ? 4 : 3));
  for (const auto& log : group.logs) log->add(Call());
  EXPECT_FALSE(group.logs[0]->compare()) << "nobody else has said anything";
  EXPECT_FALSE(group.logs[1]->compare()) << "the same as its neighbour";
  const auto failure = group.logs[2]->compare();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->kind, Failure::Kind::kMismatch);
  EXPECT_EQ(failure->text,
            "rank 1 called all_reduce #2 of float32[3] (sum), but rank 2 called all_reduce #2 of float32[4] (sum)");
  EXPECT_EQ(group.logs[0]->compare()->text,
            "rank 0 called all_reduce #2 of float32[3] (sum), but rank 2 called all_reduce #2 of float32[4] (sum)");
}

TEST(CallLog, IsSilentAboutRanksThatAgree) {
  Group group(2);
  for (int call = 0; call < 200; ++call) {
    for (const auto& log : group.logs) log->add(reduce_of(call));
  }
  group.logs[0]->add(Call());  // the other one has not come to it
  for (int look = 0; look < 3; ++look) {
    for (const auto& log : group.logs) EXPECT_FALSE(log->compare());
  }
}

TEST(CallLog, TellsOnlyNewsAndReadsOneRank) {
  Group group(8);
  for (const auto& log : group.logs) log->add(Call());
  for (int look = 0; look < 5; ++look) group.logs[3]->compare();
  EXPECT_EQ(group.told, 1);
  EXPECT_EQ(group.heard, 5);
  group.logs[3]->add(Call());
  group.logs[3]->compare();
  EXPECT_EQ(group.told, 2);
}

TEST(CallLog, KeepsTheLastCallsOnly) {
  Group group(2);
  for (std::size_t call = 0; call < 2 * CallLog::kKept; ++call) group.logs[0]->add(Call());
  group.logs[0]->compare();
  const auto said = CallHistory::parse(group.said[0]);
  ASSERT_TRUE(said);
  EXPECT_EQ(said->calls.size(), CallLog::kKept);
  EXPECT_EQ(said->last(), 2 * CallLog::kKept);
}

TEST(CallLog, DoesNotCompareWhatOnlyOneRankStillKeeps) {
  Group group(2);
  group.logs[0]->add(reduce_of(1));
  for (std::size_t call = 0; call <= 2 * CallLog::kKept; ++call) group.logs[1]->add(reduce_of(2));
  for (const auto& log : group.logs) EXPECT_FALSE(log->compare());
}

TEST(CallLog, NamesTheRanksThatDidNotCall) {
  Group group(4);
  for (const auto& log : group.logs) log->add(Call());
  group.logs[0]->add(reduce_of(3));
  group.logs[2]->add(reduce_of(3));
  group.logs[1]->compare();  // it waits for the call before
  group.logs[2]->compare();
  const Failure failure = group.logs[0]->explain(2, 5s);
  EXPECT_EQ(failure.kind, Failure::Kind::kTimeout);
  EXPECT_EQ(failure.text, "all_reduce #2 did not finish within 5000 ms: ranks 1 and 3 did not call it");
}

TEST(CallLog, DoesNotSayThatARankDidNotCallWhenThatIsNotKnown) {
  Group group(3);
  for (const auto& log : group.logs) log->add(Call());
  group.unreachable = {1};
  EXPECT_FALSE(group.logs[2]->compare()) << "its neighbour's calls are not known";
  EXPECT_EQ(group.logs[0]->explain(1, 5s).text,
            "barrier #1 did not finish within 5000 ms; what rank 1 called is not known: the store does not tell");
  group.said.erase(2);
  EXPECT_EQ(group.logs[0]->explain(1, 5s).text,
            "barrier #1 did not finish within 5000 ms: rank 2 did not call it; what rank 1 called is not known: the "
            "store does not tell");
  group.unreachable = {};
  group.said[1] = "of another version";
  EXPECT_NE(group.logs[0]->explain(1, 5s).text.find("what rank 1 called is not known"), std::string::npos);
}

TEST(CallLog, SaysSoWhenAllRanksCalled) {
  Group group(2);
  for (const auto& log : group.logs) log->add(Call());
  group.logs[1]->compare();
  EXPECT_EQ(
      group.logs[0]->explain(1, 5s).text,
      "barrier #1 did not finish within 5000 ms, although all ranks called it: a GPU is busy with something else, "
      "or the connection between them does not work (NCCL_DEBUG=INFO tells more)");
}

}  // namespace
}  // namespace lrun::detail
