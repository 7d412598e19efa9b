// lrun in a batch script of Slurm. A script takes srun's part: both nodes are this machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>

#include "support/launchers_of_a_job.h"
#include "support/mentions.h"

namespace lrun::test {
namespace {

/// Starts the second of two tasks as $SECOND says, and passes TERM on.
constexpr const char* kFakeSrun = R"(#!/bin/sh
while [ "${1#--}" != "$1" ]; do shift; done
export SLURM_STEP_ID=0 SLURM_STEP_NODELIST=127.0.0.1,b 'SLURM_STEP_TASKS_PER_NODE=1(x2)' SLURM_LOCALID=0
tasks=
trap 'kill $tasks' TERM
SLURM_PROCID=0 SLURM_NODEID=0 "$@" &
tasks=$!
export SLURM_PROCID=1 SLURM_NODEID=1
eval "$SECOND"
wait $tasks
status=$?
while kill -0 $tasks 2> /dev/null; do wait $tasks; status=$?; done
wait
exit $status
)";

class BatchScript : public ::testing::Test {
 protected:
  BatchScript() { (void)folder_.script("srun", kFakeSrun); }

  [[nodiscard]] LrunProcess::Options script(const std::string& second) const {
    return {.environment = {{"PATH", folder_.path().string() + ":" + std::getenv("PATH")},
                            {"SECOND", second},
                            {"SLURM_JOB_ID", "12"},
                            {"SLURM_JOB_NODELIST", "127.0.0.1,b"}}};
  }
  [[nodiscard]] static Words line(const std::string& program) {
    Words words{"-n", "1", "--output", "raw", "--master-port", std::to_string(free_port())};
    for (const std::string& word : shell(program)) words.push_back(word);
    return words;
  }

  TemporaryFolder folder_;
};

TEST_F(BatchScript, EndsSoonWhereLrunCannotBeStartedOnANode) {
  LrunProcess lrun(line("echo runs"), script("echo 'srun: error: b: task 1: Exited with exit code 2' >&2"));
  EXPECT_EQ(lrun.wait().code, 125) << lrun.err();
  EXPECT_THAT(lrun.err(), mentions({"lrun: error: lrun on b ended before the run had begun: Exited with exit code 2",
                                    "lrun: hint: the lines above say why", "has to start on every node"}));
  EXPECT_EQ(lrun.out(), "");
}

TEST_F(BatchScript, SaysWhatToTypeWhereItsJobHasEndedLongAgo) {
  (void)folder_.script("srun", "#!/bin/sh\necho 'srun: error: Invalid job id specified' >&2\nexit 1\n");
  LrunProcess lrun(line("echo runs"), script(""));
  EXPECT_EQ(lrun.wait().code, 1) << lrun.err();
  EXPECT_THAT(lrun.err(),
              mentions({"srun: error: Invalid job id", "lrun: error: srun failed before it had started lrun",
                        "lrun: hint: where its job has ended, 'unset SLURM_JOB_ID'"}));
}

TEST_F(BatchScript, RunsNothingOnANodeThatLacksItsFolder) {
  LrunProcess lrun(line("echo runs"), script("cd /; LRUN_SRUN_FOLDER=/no/such/folder \"$@\" & wait $!"));
  EXPECT_EQ(lrun.wait().code, 125) << lrun.err();
  EXPECT_THAT(lrun.err(), mentions({"lrun: error: the run was stopped: node ",
                                    ": cannot enter '/no/such/folder', where lrun was started: No such file"}));
  EXPECT_EQ(lrun.out(), "");
}

TEST_F(BatchScript, HasTheCodeOfTheRunAndNotOfSrun) {
  LrunProcess lrun(line("exit $((3 * RANK))"), script("\"$@\" & wait $!; kill -9 $$"));
  EXPECT_EQ(lrun.wait().code, 3) << lrun.err();
  EXPECT_FALSE(contains(lrun.err(), "\x1e")) << lrun.err();
}

TEST(MultiProg, TellsWhatIsWrongInTheLineOfALaterTaskOnly) {
  const auto task = [](int rank) {
    const std::string number = std::to_string(rank);
    return LrunProcess::Options{.environment = {{"SLURM_JOB_ID", std::to_string(::getpid())},
                                                {"SLURM_STEP_ID", "0"},
                                                {"SLURM_STEP_NODELIST", "127.0.0.1,b"},
                                                {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"},
                                                {"SLURM_PROCID", number},
                                                {"SLURM_NODEID", number},
                                                {"SLURM_LOCALID", "0"}}};
  };
  LrunProcess first({"-n", "1", "true"}, task(0));
  LrunProcess second({"--num_nodes", "3", "-n", "1", "true"}, task(1));
  EXPECT_EQ(second.wait().code, 125);
  EXPECT_THAT(second.err(), mentions({"lrun: error: '--num_nodes 3': Slurm step ", "has 2 nodes"}));
  first.signal(SIGTERM);
  (void)first.wait();
  LrunProcess alone({"--num_nodes", "3", "-n", "1", "true"}, task(1));
  EXPECT_EQ(alone.wait().code, 125);
  EXPECT_EQ(alone.err(), "") << "the first task says it";
}

}  // namespace
}  // namespace lrun::test
