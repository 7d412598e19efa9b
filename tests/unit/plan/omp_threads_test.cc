#include "plan/omp_threads.h"

#include <gtest/gtest.h>

#include "planning.h"

namespace lrun::launcher {
namespace {

TEST(OmpThreads, GivesEveryWorkerAFairShareOfTheCpus) {
  const auto threads = [](const LaunchRequest& request, int cpus, const Environment& environment = Environment()) {
    return plan_of(request, cpu_node(cpus), environment).omp_num_threads;
  };
  EXPECT_EQ(threads(request_for("4"), 16), 4);
  EXPECT_EQ(threads(request_for("3"), 16), 5);
  EXPECT_EQ(threads(request_for("8"), 2), 1);
  EXPECT_EQ(threads(request_for(""), 16), 16);
  EXPECT_EQ(threads(request_for("4"), 16, environment_with({{"OMP_NUM_THREADS", "2"}})), 0) << "the user's own is kept";
  LaunchRequest dp = request_for("4");
  dp.strategy = strategy_flag("dp");
  EXPECT_EQ(threads(dp, 16), 4) << "each of the four replicas has a team of threads";
}

TEST(OmpThreads, GivesTorchrunsWorkersOneThreadAndSaysSo) {
  LaunchRequest request = request_for_processes("2");
  request.compat = Compat::kTorchrun;
  const LaunchPlan several = plan_of(request, cpu_node());
  EXPECT_EQ(several.omp_num_threads, 1);
  ASSERT_EQ(several.warnings.size(), 1U);
  EXPECT_NE(several.warnings.front().find("OMP_NUM_THREADS"), std::string::npos);
  request.nproc_per_node = workers_flag("1");
  EXPECT_EQ(plan_of(request, cpu_node()).omp_num_threads, 0);
}

TEST(OmpThreads, ThatAreNoNumberAreWarnedAbout) {
  const auto warning = [](const char* value) {
    return warn_about_threads(environment_with({{"OMP_NUM_THREADS", value}}));
  };
  for (const char* const value : {"1", "16", " 4 ", "8,2"}) EXPECT_EQ(warning(value), "") << value;
  EXPECT_EQ(warn_about_threads(Environment()), "");
  EXPECT_EQ(warning("0"), "'OMP_NUM_THREADS=0' is no number of threads: write 1 or more, or unset it");
  for (const char* const value : {"", "-1", "four", "4,x"}) EXPECT_NE(warning(value), "") << value;
}

}  // namespace
}  // namespace lrun::launcher
