#include "report/stack_text.h"

#include <gtest/gtest.h>

namespace lrun::launcher {
namespace {

StackSample waiting(int rank) {
  return {.rank = rank,
          .pid = 100 + rank,
          .command = "python3",
          .state = 'S',
          .threads = 4,
          .system_call = "futex",
          .wait_channel = "futex_wait_queue",
          .python = {{"all_reduce", "distributed_c10d.py:3075"}, {"main", "train.py:40"}},
          .native = {{"pthread_cond_wait", "libc.so.6"},
                     {"c10d::Work::wait()", "libtorch_cpu.so"},
                     {"_PyEval_EvalFrameDefault", "python3.11"},
                     {"main", "python3.11"}}};
}

TEST(StackText, IsThisText) {
  StackSample reading = waiting(3);
  reading.system_call = "read";
  reading.waits_for = "/data/x.bin";
  reading.wait_channel = "folio_wait_bit";
  reading.python = {{"load", "data.py:88"}, {"main", "train.py:38"}};
  reading.native.clear();
  reading.problems = {"eu-stack took longer than 10s"};
  const StackSample gone{.rank = 4};
  EXPECT_EQ(
      stack_text({waiting(0), waiting(1), reading, gone}),
      "2 ranks wait in all_reduce at train.py:40; rank 3 is in read() of /data/x.bin, called from load (data.py:88); "
      "rank 4 has ended\n"
      "\n"
      "ranks 0-1 wait in all_reduce at train.py:40; shown is rank 0, pid 100 (python3, 4 threads)\n"
      "  kernel  sleeping in futex(), wait channel futex_wait_queue\n"
      "  Python  all_reduce (distributed_c10d.py:3075)\n"
      "          main (train.py:40)\n"
      "  native  pthread_cond_wait (libc.so.6)\n"
      "          c10d::Work::wait() (libtorch_cpu.so)\n"
      "          the interpreter\n"
      "\n"
      "rank 3, pid 103 (python3, 4 threads): is in read() of /data/x.bin, called from load (data.py:88)\n"
      "  kernel  sleeping in read() of /data/x.bin, wait channel folio_wait_bit\n"
      "  Python  load (data.py:88)\n"
      "          main (train.py:38)\n"
      "\n"
      "rank 4: has ended\n"
      "\n"
      "rank 3: eu-stack took longer than 10s\n");
}

TEST(StackText, HasTheOtherThreadsOfPythonOnce) {
  StackSample sample = waiting(0);
  sample.native.clear();
  const PythonStack idle{.frames = {{"wait", "threading.py:331"}, {"run", "threading.py:975"}}};
  sample.other_threads = {idle, {}, {.holds_gil = true, .frames = {{"hook", "train.py:9"}}}, idle};
  EXPECT_EQ(stack_text({sample}),
            "rank 0, pid 100 (python3, 4 threads): waits in all_reduce at train.py:40\n"
            "  kernel  sleeping in futex(), wait channel futex_wait_queue\n"
            "  Python  all_reduce (distributed_c10d.py:3075)\n"
            "          main (train.py:40)\n"
            "  thread  wait (threading.py:331)\n"
            "          run (threading.py:975)\n"
            "  thread  hook (train.py:9), holds the GIL\n");
  sample.other_threads.clear();
  for (int i = 0; i < 20; ++i) sample.other_threads.push_back({.frames = {{"f" + std::to_string(i), "a.py:1"}}});
  const std::string text = stack_text({sample});
  EXPECT_NE(text.find("  thread  f7 (a.py:1)\n          … 12 more threads\n"), std::string::npos) << text;
}

TEST(StackJson, IsReadBackAsTheSameSamples) {
  StackSample reading = waiting(3);
  reading.waits_for = "/data/x.bin";
  reading.python.front().foreign = true;
  reading.problems = {"eu-stack took longer than 10s"};
  reading.other_threads = {{.holds_gil = true, .frames = {{"hook", "train.py:9"}}}, {}};
  const std::vector<StackSample> samples{waiting(0), reading, {.rank = 4}};
  EXPECT_EQ(stack_samples_from_json(stack_json(samples)), samples);
}

TEST(StackJson, ThatCannotBeReadIsEmpty) {
  for (const char* const text : {"", "{", "{}", R"({"ranks": 3})", R"({"ranks": [{"rank": 1e300}]})"}) {
    EXPECT_FALSE(stack_samples_from_json(text)) << text;
  }
  std::string many = R"({"ranks": [)";
  const std::string one = stack_json({{.rank = 1}});
  const std::string rank = one.substr(one.find('[') + 1, one.rfind(']') - one.find('[') - 1);
  for (int i = 0; i < 4097; ++i) many += (i == 0 ? "" : ",") + rank;
  EXPECT_FALSE(stack_samples_from_json(many + "]}"));
}

TEST(PlacesOf, AreThoseOfRanksThatLiveWithOneForTheSameWords) {
  StackSample deeper = waiting(2);
  deeper.python.push_back({"run", "train.py:90"});
  const std::vector<RankPlace> places = places_of(fold_stacks({waiting(0), waiting(1), deeper, {.rank = 3}}));
  ASSERT_EQ(places.size(), 1U);
  EXPECT_EQ(places.front(), (RankPlace{"waits in", "wait in", "all_reduce at train.py:40", true, 3, 0}));
}

TEST(StackText, ShowsDeepStacksInPart) {
  StackSample deep{.rank = 0, .pid = 9, .command = "a", .state = 'R', .threads = 1};
  for (int i = 0; i < 40; ++i) deep.native.push_back({"f" + std::to_string(i), ""});
  const std::string text = stack_text({deep});
  EXPECT_NE(text.find("          f15\n          … 24 more\n"), std::string::npos) << text;
  for (StackFrame& frame : deep.native) frame.function = "again";
  EXPECT_EQ(stack_text({deep}),
            "rank 0, pid 9 (a, 1 thread): runs again\n"
            "  kernel  running\n  native  again\n");
}

TEST(StackText, ALongSentenceIsCut) {
  std::vector<StackSample> samples;
  for (int rank = 0; rank < 9; ++rank) {
    samples.push_back({.rank = rank, .pid = 9, .state = 'R', .native = {{"f" + std::to_string(rank), ""}}});
  }
  EXPECT_EQ(stacks_in_a_sentence(fold_stacks(samples)),
            "rank 0 runs f0; rank 1 runs f1; rank 2 runs f2; rank 3 runs f3; rank 4 runs f4; rank 5 runs f5; "
            "3 more ranks elsewhere");
}

TEST(LauncherStacks, AreCutWithARemainderThatTheReaderSees) {
  LauncherStacks stacks{.host = "b", .pid = 7, .ranks = 4};
  for (int rank = 0; rank < 4; ++rank) {
    stacks.samples.push_back({.rank = rank, .pid = 9, .state = 'R'});
    for (int i = 0; i < 30; ++i) stacks.samples.back().native.push_back({"function" + std::to_string(i), "a.cc"});
  }
  const auto whole = launcher_stacks_from_json(to_json_within(stacks, 100'000));
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->samples[3].native.size(), 30U);
  EXPECT_EQ(whole->samples[3].host, "b");
  const std::string less = to_json_within(stacks, 3000);
  EXPECT_LE(less.size(), 3000U);
  EXPECT_EQ(launcher_stacks_from_json(less)->samples.size(), 4U) << "ranks matter more than outer calls";
  const std::string least = to_json_within(stacks, 600);
  EXPECT_LE(least.size(), 600U);
  EXPECT_LT(launcher_stacks_from_json(least)->samples.size(), 4U);
  EXPECT_EQ(launcher_stacks_from_json(least)->ranks, 4);
  EXPECT_FALSE(launcher_stacks_from_json("{}"));
}

}  // namespace
}  // namespace lrun::launcher
