#include "plan/questions.h"

#include <gtest/gtest.h>

#include "planning.h"

namespace lrun::launcher {
namespace {

TEST(QuestionsOf, AskForGpusOnlyWhenTheRequestDependsOnThem) {
  const Environment none;
  const Environment hidden = environment_with({{"CUDA_VISIBLE_DEVICES", ""}});
  EXPECT_TRUE(questions_of(request_for("auto"), none).gpus);
  EXPECT_TRUE(questions_of(request_for("2"), none).gpus);
  EXPECT_TRUE(questions_of(request_for_processes("gpu"), none).gpus);
  EXPECT_FALSE(questions_of(request_for("2"), hidden).gpus);
  EXPECT_TRUE(questions_of(request_for("0,1"), hidden).gpus) << "the refusal says that they are hidden";
  EXPECT_FALSE(questions_of(request_for_processes("cpu"), none).gpus);
  LaunchRequest on_cpu = request_for("auto");
  on_cpu.accelerator = accelerator_flag(DeviceKind::kCpu);
  EXPECT_FALSE(questions_of(on_cpu, none).gpus);
}

TEST(QuestionsOf, AskForCpusOnlyWhenTheRequestDependsOnThem) {
  const Environment none;
  const Environment threads = environment_with({{"OMP_NUM_THREADS", "1"}});
  EXPECT_TRUE(questions_of(request_for("2"), none).cpus) << "the threads of each";
  EXPECT_FALSE(questions_of(request_for("2"), threads).cpus);
  EXPECT_TRUE(questions_of(request_for("auto"), threads).cpus);
  EXPECT_TRUE(questions_of(request_for_processes("cpu"), threads).cpus);
  EXPECT_TRUE(questions_of(request_for_processes("auto"), threads).cpus);
}

TEST(QuestionsOf, AskForTheChipsAndNotForGpusUnderTpu) {
  const Questions questions = questions_of(under_tpu("8"), Environment());
  EXPECT_TRUE(questions.tpus);
  EXPECT_FALSE(questions.gpus);
  EXPECT_FALSE(questions_of(request_for("8"), Environment()).tpus) << "nobody else waits for it";
}

}  // namespace
}  // namespace lrun::launcher
