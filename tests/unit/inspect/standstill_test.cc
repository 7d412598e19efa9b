#include "inspect/standstill.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <vector>

#include "inspect/process_look.h"
#include "report/stack_text.h"

namespace lrun::launcher {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

/// A rank that waits in an operation of torch, called from a line of train.py.
StackSample waiting(int rank, const std::string& operation, int line) {
  return {.rank = rank,
          .pid = 100 + rank,
          .command = "python3",
          .state = 'S',
          .threads = 3,
          .activity = 50,
          .system_call = "futex",
          .python = {{operation, "distributed_c10d.py:3075", true}, {"main", "train.py:" + std::to_string(line)}}};
}

/// A rank that waits for a lock of its own.
StackSample in_evaluate(int rank) {
  return {.rank = rank,
          .pid = 100 + rank,
          .command = "python3",
          .state = 'S',
          .threads = 3,
          .activity = 50,
          .system_call = "futex",
          .python = {{"evaluate", "train.py:41"}, {"main", "train.py:90"}}};
}

TwoLooks still(const std::vector<StackSample>& ranks) { return {.before = ranks, .now = ranks}; }

TEST(Standstill, NamesTheRankThatTheOthersWaitFor) {
  const auto found =
      find_standstill(still({in_evaluate(0), waiting(1, "all_reduce", 88), waiting(2, "all_reduce", 88)}));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(stacks_in_a_sentence(found->groups),
            "2 ranks wait in all_reduce at train.py:88; rank 0 is in futex(), called from evaluate (train.py:41)");
  EXPECT_EQ(found->hint, "the others wait for rank 0; 'lrun stack' shows all calls");
}

TEST(Standstill, DifferentOperationsNeverMeet) {
  const auto found = find_standstill(still({waiting(0, "broadcast", 12), waiting(1, "all_reduce", 14)}));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->hint, "all ranks have to call the same operations in the same order");
}

TEST(Standstill, AllRanksInOneOperationMayHaveOtherSizes) {
  TwoLooks looks = still({waiting(0, "all_reduce", 14), waiting(1, "all_reduce", 14)});
  const auto found = find_standstill(looks);
  ASSERT_TRUE(found.has_value());
  EXPECT_THAT(found->hint, HasSubstr("sizes of their tensors"));
}

TEST(Standstill, RanksThatAllWaitInTheirFirstCallExpectMoreOrAnotherStore) {
  TwoLooks looks = still({waiting(0, "init_process_group", 3), waiting(1, "init_process_group", 3)});
  EXPECT_THAT(find_standstill(looks)->hint, HasSubstr("all 2 ranks are there, and the program waits for more"));
  looks.outside_store = {1};
  EXPECT_THAT(find_standstill(looks)->hint, StartsWith("rank 1 does not use this run's store"));
  looks.outside_store = {0, 1};
  looks.store_address = "127.0.0.1:4711";
  EXPECT_EQ(find_standstill(looks)->hint,
            "no rank uses this run's store (127.0.0.1:4711): remove from the program what sets MASTER_ADDR or "
            "MASTER_PORT, or 'init_method'");
}

TEST(Standstill, RanksWithStoresOfTheirOwnNeverMeetTheOthers) {
  TwoLooks looks = still({waiting(0, "init_process_group", 3), waiting(1, "init_process_group", 3)});
  EXPECT_TRUE(find_standstill(looks)->at_start);
  looks.outside_store = {1};
  EXPECT_TRUE(find_standstill(looks)->at_start) << "the name of the store's host may take a while";
  looks.store_has_number = true;
  EXPECT_FALSE(find_standstill(looks)->at_start);
  EXPECT_FALSE(find_standstill(looks)->is_for_good) << "a connection may yet be made";
  looks.outside_store = {0, 1};
  EXPECT_TRUE(find_standstill(looks)->at_start) << "they may meet elsewhere";
}

TEST(Standstill, ARankThatHasNotBegunIsWaitedFor) {
  TwoLooks looks = still({waiting(0, "init_process_group", 3), in_evaluate(1)});
  looks.outside_store = {1};
  looks.store_has_number = true;
  EXPECT_TRUE(find_standstill(looks)->at_start);
}

TEST(Standstill, ARankMaySleepBetweenTwoTriesToMeetTheOthers) {
  TwoLooks looks = still({waiting(0, "init_process_group", 3), waiting(1, "init_process_group", 3)});
  for (auto* const list : {&looks.before, &looks.now}) list->front().system_call = "clock_nanosleep";
  EXPECT_TRUE(find_standstill(looks));
}

TEST(Standstill, RanksThatAllReceiveWaitForNobody) {
  EXPECT_THAT(find_standstill(still({waiting(0, "recv", 3), waiting(1, "recv", 5)}))->hint, HasSubstr("none sends"));
}

TEST(Standstill, ARankThatHasEndedIsNotComing) {
  StackSample ended;
  ended.rank = 1;
  const auto found = find_standstill(still({waiting(0, "barrier", 7), ended}));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(stacks_in_a_sentence(found->groups), "rank 0 waits in barrier at train.py:7; rank 1 has ended");
}

TEST(Standstill, AStoppedRankIsToldWhateverTheOthersDo) {
  StackSample stopped = in_evaluate(0);
  stopped.state = 'T';
  EXPECT_EQ(find_standstill(still({stopped}))->hint, "'kill -CONT 100' continues a stopped process");
  EXPECT_TRUE(find_standstill(still({stopped, waiting(1, "all_reduce", 88)})));
  stopped.host = "node1";
  EXPECT_EQ(find_standstill(still({stopped}))->hint, "'kill -CONT 100' on node1 continues a stopped process");
  stopped.state = 't';
  EXPECT_FALSE(find_standstill(still({stopped}))) << "a debugger holds it";
}

TEST(Standstill, ARankThatWaitsForSomethingElseMayYetGoOn) {
  EXPECT_FALSE(find_standstill(still({in_evaluate(0), waiting(1, "all_reduce", 88)}))->is_for_good);
  EXPECT_TRUE(find_standstill(still({waiting(0, "broadcast", 12), waiting(1, "all_reduce", 14)}))->is_for_good);
}

TEST(Standstill, ARankThatMaySoonGoOnIsNotToldOf) {
  const std::vector<StackSample> ranks{in_evaluate(0), waiting(1, "all_reduce", 88)};
  EXPECT_TRUE(find_standstill(still(ranks)));
  TwoLooks looks = still(ranks);
  looks.busy = {0};
  EXPECT_FALSE(find_standstill(looks)) << "its data loader's processes compute";
  looks = still(ranks);
  looks.now[0].activity += 100;
  EXPECT_FALSE(find_standstill(looks)) << "it polls, downloads or computes";
  looks = still(ranks);
  looks.now[0].state = 'D';
  EXPECT_FALSE(find_standstill(looks)) << "it writes a checkpoint";
  looks = still(ranks);
  looks.now[1].activity += 100;
  EXPECT_FALSE(find_standstill(looks)) << "a loop comes to the same line again and again";
  for (const char* const call : {"select", "poll", "epoll_wait"}) {
    looks = still(ranks);
    looks.now[0].system_call = call;
    EXPECT_FALSE(find_standstill(looks)) << "it waits for some time";
  }
  looks = still(ranks);
  looks.now[0].system_call = "clock_nanosleep";
  const auto sleeping = find_standstill(looks);
  ASSERT_TRUE(sleeping) << "the others wait until it has slept";
  EXPECT_FALSE(sleeping->is_for_good);
  looks = still(ranks);
  looks.now[0].python.front().place = "train.py:42";
  EXPECT_FALSE(find_standstill(looks)) << "it went on";
  looks = still(ranks);
  looks.now[1].python.back().place = "train.py:95";
  EXPECT_FALSE(find_standstill(looks)) << "the operation ended, and the next one began";
  looks = still(ranks);
  looks.now[0].pid = 900;
  EXPECT_FALSE(find_standstill(looks)) << "it was started again";
}

TEST(Standstill, NeedsAStackAndSomebodyWhoWaits) {
  TwoLooks looks = still({in_evaluate(0), in_evaluate(1)});
  EXPECT_FALSE(find_standstill(looks)) << "both may sleep on purpose";
  looks = still({in_evaluate(0), waiting(1, "all_reduce", 88)});
  for (auto* const list : {&looks.before, &looks.now}) list->front().python.clear();
  EXPECT_FALSE(find_standstill(looks)) << "nobody knows where rank 0 is";
  looks = still({in_evaluate(0), waiting(1, "all_reduce", 88)});
  looks.before.clear();
  EXPECT_FALSE(find_standstill(looks));
}

TEST(HasRested, SaysWhatAThreadDidInBetween) {
  EXPECT_TRUE(has_rested(50, 50));
  EXPECT_TRUE(has_rested(50, 53)) << "a loader looks after its workers";
  EXPECT_FALSE(has_rested(50, 150));
  EXPECT_FALSE(has_rested(50, 7)) << "another process has that pid now";
}

TEST(ActivityOf, GrowsWhileAProcessWorks) {
  const std::int64_t before = activity_of(::getpid());
  EXPECT_GT(before, 0);
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (activity_of(::getpid()) < before + 20 && std::chrono::steady_clock::now() < limit) {
  }
  EXPECT_GE(activity_of(::getpid()), before + 20);
  EXPECT_EQ(activity_of(0), 0) << "there is no such process";
}

/// A rank of liblrun that waits in its call of that number, as far as it has reported that.
StackSample reported(int rank, std::uint64_t call) {
  return {.rank = rank,
          .pid = 100 + rank,
          .command = "train",
          .state = 'S',
          .threads = 3,
          .activity = 50 + static_cast<std::int64_t>(call),  // it may wake up as often as it likes
          .system_call = call % 2 == 0 ? "futex" : "poll",
          .native = {{"all_reduce", ""}},
          .call = {call}};
}

/// A rank of such a program that waits in none.
StackSample elsewhere(int rank, const std::string& system_call) {
  return {.rank = rank,
          .pid = 100 + rank,
          .command = "train",
          .state = 'S',
          .threads = 3,
          .activity = 50,
          .system_call = system_call};
}

/// Ranks at two moments, some of which report their calls.
TwoLooks still_in_calls(const std::vector<StackSample>& ranks) {
  TwoLooks looks = still(ranks);
  looks.calls_are_known = true;
  return looks;
}

TEST(Standstill, RanksThatReportTheirCallsNeedNoStack) {
  TwoLooks looks = still_in_calls({reported(0, 7), elsewhere(1, "futex"), reported(2, 9)});
  looks.busy = {0, 2};  // a wait may spin
  const auto found = find_standstill(looks);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(stacks_in_a_sentence(found->groups), "2 ranks wait in all_reduce; rank 1 is in futex()");
  EXPECT_EQ(found->hint, "the others wait for rank 1; 'lrun stack' shows all calls");
  EXPECT_FALSE(found->is_for_good);
  looks.busy = {1};
  EXPECT_FALSE(find_standstill(looks)) << "threads of it may compute";
}

TEST(Standstill, ANewCallIsAMove) {
  TwoLooks looks = still_in_calls({reported(0, 7), elsewhere(1, "futex")});
  looks.now[0].call = {8};
  EXPECT_FALSE(find_standstill(looks));
  EXPECT_FALSE(find_standstill(still_in_calls({elsewhere(0, "futex"), elsewhere(1, "futex")})))
      << "nobody waits for anybody";
}

TEST(Standstill, ARankWithoutAStackIsStillInOneSystemCall) {
  TwoLooks looks = still_in_calls({reported(0, 7), elsewhere(1, "read")});
  EXPECT_TRUE(find_standstill(looks));
  looks.now[1].system_call = "write";
  EXPECT_FALSE(find_standstill(looks));
  looks.now[1].system_call = "restart_syscall";
  EXPECT_TRUE(find_standstill(looks)) << "a look has interrupted the same call";
  looks.before[1].system_call = "poll";
  EXPECT_FALSE(find_standstill(looks)) << "that ends by itself";
  looks.now[1].system_call = looks.before[1].system_call = "";
  EXPECT_FALSE(find_standstill(looks)) << "it runs";
  EXPECT_FALSE(find_standstill(still_in_calls({reported(0, 7), elsewhere(1, "epoll_wait")}))) << "an event may come";
}

TEST(Standstill, RanksThatAllWaitMayMoveALotOfData) {
  TwoLooks looks = still_in_calls({reported(0, 7), reported(1, 7)});
  ASSERT_TRUE(find_standstill(looks)) << "in groups that wait for each other, perhaps";
  EXPECT_FALSE(find_standstill(looks)->is_for_good);
  looks.busy = {1};
  EXPECT_FALSE(find_standstill(looks));
}

TEST(Standstill, RanksOfLiblrunThatAllConnectAreLeftToIt) {
  TwoLooks looks = still_in_calls({reported(0, 7), reported(1, 7), elsewhere(2, "futex")});
  for (std::size_t rank = 0; rank < 2; ++rank) {
    looks.before[rank].native = looks.now[rank].native = {{"init_process_group", ""}};
  }
  EXPECT_TRUE(find_standstill(looks)->at_start) << "rank 2 does not come";
  looks.before.pop_back();
  looks.now.pop_back();
  EXPECT_FALSE(find_standstill(looks));
}

/// As a look at its native stack shows it.
StackSample called_from(StackSample sample, const std::string& inner, const std::string& outer) {
  sample.native = {{inner, "libtrain.so"}, {outer, "train"}};
  return sample;
}

TEST(Standstill, StacksOfALaterLookSayWhere) {
  const TwoLooks looks = still_in_calls({reported(0, 7), elsewhere(1, "futex"), reported(2, 9)});
  const auto found = with_stacks(
      looks, {called_from(reported(0, 7), "lrun::Session::all_reduce(at::Tensor)", "step()"),
              called_from(elsewhere(1, "futex"), "load_batch()", "main"), called_from(reported(2, 9), "??", "??")});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(
      stacks_in_a_sentence(found->groups),
      "rank 0 waits in all_reduce at step() (train); rank 1 is in futex(), called from load_batch() (libtrain.so); "
      "rank 2 waits in all_reduce")
      << "a stack that says less than the rank itself is left out";
  EXPECT_EQ(with_stacks(looks, {})->groups, find_standstill(looks)->groups);
}

TEST(Standstill, IsOverWhereALaterLookSeesThatARankWentOn) {
  const TwoLooks looks = still_in_calls({reported(0, 7), elsewhere(1, "futex")});
  EXPECT_FALSE(
      with_stacks(looks, {called_from(elsewhere(1, "futex"), "lrun::Session::all_reduce(at::Tensor)", "main")}));
  EXPECT_FALSE(with_stacks(looks, {called_from(elsewhere(1, "read"), "load_batch()", "main")}));
  EXPECT_FALSE(with_stacks(looks, {called_from(reported(0, 8), "all_reduce", "main")})) << "in its next call";
  EXPECT_TRUE(with_stacks(looks, {called_from(reported(0, 7), "all_reduce", "main")}));
}

}  // namespace
}  // namespace lrun::launcher
