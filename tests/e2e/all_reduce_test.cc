#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "support/lrun_process.h"

namespace lrun::test {
namespace {

TEST(AllReduce, AWorkerKilledInTheMiddleIsNamedAndTheOthersEnd) {
  LrunProcess lrun({"--devices", "3", ALL_REDUCE_WORKER});
  for (const char* rank : {"[0] reducing", "[1] reducing", "[2] reducing"})
    ASSERT_TRUE(lrun.wait_for(rank)) << lrun.err();
  const pid_t victim = pid_of_rank(lrun, 1);
  ASSERT_NE(victim, kNoProcess);
  ASSERT_EQ(::kill(victim, SIGKILL), 0);
  EXPECT_EQ(lrun.wait().code, 137) << lrun.err();
  EXPECT_NE(lrun.err().find("lrun: error: rank 1 died of SIGKILL"), std::string::npos) << lrun.err();
  EXPECT_NE(lrun.err().find("(local rank 1, pid " + std::to_string(victim)), std::string::npos) << lrun.err();
}

TEST(AllReduce, AWorkerThatRunsFewerStepsIsNamedAndNotTheOneThatWaitsForIt) {
  LrunProcess lrun({"--devices", "2", ALL_REDUCE_WORKER, "fewer"});
  EXPECT_EQ(lrun.wait().code, 1) << lrun.err();
  EXPECT_NE(lrun.err().find("lrun: error: rank 1 exited with code 0: rank 0 waited for it in all_reduce: did it run "
                            "fewer steps?\n"),
            std::string::npos)
      << lrun.err();
}

TEST(AllReduce, AWorkerThatCrashesSaysWhere) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer handles faults itself";
#endif
  const auto no_core_files = [] {
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_CORE, &none);
  };
  LrunProcess lrun({"--devices", "2", ALL_REDUCE_WORKER, "fault"}, {.before_exec = no_core_files});
  EXPECT_EQ(lrun.wait().code, 128 + SIGSEGV) << lrun.err();
  EXPECT_NE(lrun.err().find("died of SIGSEGV (invalid memory access): address 0x10 at all_reduce_worker+0x"),
            std::string::npos)
      << lrun.err();
  EXPECT_NE(lrun.err().find("lrun: hint: 'addr2line -Cfipe " ALL_REDUCE_WORKER " 0x"), std::string::npos) << lrun.err();
}

TEST(AllReduce, AWorkerWhoseFaultsAreHandledAlreadySaysNothing) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer handles faults itself";
#endif
  LrunProcess lrun({"--devices", "2", ALL_REDUCE_WORKER, "fault"}, {.before_exec = [] { ::signal(SIGSEGV, SIG_IGN); }});
  EXPECT_EQ(lrun.wait().code, 128 + SIGSEGV) << lrun.err();
  EXPECT_EQ(lrun.err().find("lrun: SIGSEGV"), std::string::npos) << lrun.err();
}

TEST(AllReduce, AWorkerThatTheOthersWaitForInVainIsNamedWithItsPlace) {
  LrunProcess lrun({"--devices", "3", ALL_REDUCE_WORKER, "hang"});
  ASSERT_TRUE(lrun.wait_for("lrun: note: no rank has moved for ")) << lrun.err();
  ASSERT_TRUE(lrun.wait_for("lrun: hint: the others wait for rank 1; 'lrun stack' shows all calls")) << lrun.err();
  EXPECT_NE(lrun.err().find(" in all_reduce"), std::string::npos) << lrun.err();
  EXPECT_NE(lrun.err().find("; rank 1 is in read() of a pipe"), std::string::npos) << lrun.err();
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)  // whose reader may be too slow on a busy machine
  EXPECT_NE(lrun.err().find(", called from load_batch() (all_reduce_worker)"), std::string::npos) << lrun.err();
#endif
}

}  // namespace
}  // namespace lrun::test
