#include "plan/crowded_cpus.h"

#include <gtest/gtest.h>

#include "plan/omp_threads.h"
#include "planning.h"
#include "support/mentions.h"

namespace lrun::launcher {
namespace {

using Lines = std::vector<std::string>;

Environment threads(const std::string& number) { return environment_with({{"OMP_NUM_THREADS", number}}); }

TEST(CrowdedCpus, AreToldOfFarMoreWorkers) {
  EXPECT_THAT(plan_of(request_for("64"), cpu_node(2)).warnings,
              testing::ElementsAre(mentions({"64 workers", "2 usable CPUs", "'--devices 2'"})));
  LaunchRequest replicas = request_for("64");
  replicas.strategy = strategy_flag("dp");
  EXPECT_THAT(plan_of(replicas, cpu_node(1)).warnings,
              testing::ElementsAre(mentions({"64 replicas", "1 usable CPU", "'--devices 1'"})));
}

TEST(CrowdedCpus, AreNoneUpToFourWorkersACpu) {
  EXPECT_EQ(plan_of(request_for("8"), cpu_node(2)).warnings, Lines());
  EXPECT_EQ(plan_of(request_for("9"), cpu_node(2)).warnings.size(), 1U);
  EXPECT_EQ(plan_of(request_for_processes("4"), cpu_node(1)).warnings, Lines());
}

TEST(CrowdedCpus, AreNoMatterToWorkersOnGpus) {
  AllocatedNode node = gpu_node(8);
  node.cpus = 1;
  EXPECT_EQ(plan_of(request_for("8"), node).warnings, Lines());
}

TEST(CrowdedCpus, AreToldOfFarMoreThreads) {
  EXPECT_EQ(plan_of(request_for(""), cpu_node(2), threads("64")).warnings,
            Lines{"OMP_NUM_THREADS=64 in 1 worker makes 64 threads on 2 usable CPUs, which will mostly wait for each "
                  "other; OMP_NUM_THREADS=2 is a fair share"});
  EXPECT_EQ(plan_of(request_for("4"), cpu_node(16), threads("17,2")).warnings,
            Lines{"OMP_NUM_THREADS=17 in 4 workers makes 68 threads on 16 usable CPUs, which will mostly wait for each "
                  "other; OMP_NUM_THREADS=4 is a fair share"});
  AllocatedNode gpus = gpu_node(4);
  EXPECT_EQ(plan_of(request_for("4"), gpus, threads("64")).warnings.size(), 1U) << "threads are on CPUs anyway";
}

TEST(CrowdedCpus, AreNoneOfThreadsThatFitOrCannotBeRead) {
  for (const char* const number : {"1", "16"}) {
    EXPECT_EQ(plan_of(request_for("4"), cpu_node(16), threads(number)).warnings, Lines()) << number;
  }
  for (const char* const number : {"", "many", "-3", "0"}) {
    EXPECT_EQ(plan_of(request_for("4"), cpu_node(16), threads(number)).warnings,
              Lines{warn_about_threads(threads(number))})
        << number;
  }
  EXPECT_EQ(plan_of(request_for("64"), cpu_node(2), threads("64")).warnings.size(), 1U) << "one is enough";
}

TEST(CrowdedCpus, AreCountedByTheQuotaWhereThreadsWereAskedFor) {
  EXPECT_TRUE(questions_of(request_for("2"), threads("64")).cpus);
}

}  // namespace
}  // namespace lrun::launcher
