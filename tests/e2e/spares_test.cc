// A batch script of Slurm with nodes that wait for the place of a lost one. A script takes srun's part: all nodes are
// this machine.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "support/launchers_of_a_job.h"
#include "support/mentions.h"

namespace lrun::test {
namespace {

/// As srun does: passes TERM on to its tasks, and ends with the highest of their codes, which it also leaves in a file.
constexpr const char* kFakeSrun = R"(#!/bin/sh
folder=${0%/*}
echo "$*" > "$folder/asked"
while [ "${1#--}" != "$1" ]; do shift; done
export SLURM_STEP_ID=0 SLURM_STEP_NODELIST=127.0.0.1,b,c 'SLURM_STEP_TASKS_PER_NODE=1(x3)' SLURM_LOCALID=0
tasks=
trap 'kill $tasks' TERM
for node in 0 1 2; do
  TASK=$node SLURM_PROCID=$node SLURM_NODEID=$node "$@" &
  echo $! > "$folder/task$node.new" && mv "$folder/task$node.new" "$folder/task$node"
  tasks="$tasks $!"
done
code=0
for task in $tasks; do
  wait $task
  status=$?
  while kill -0 $task 2> /dev/null; do
    wait $task
    status=$?
  done
  [ $status -le $code ] || code=$status
done
echo $code > "$folder/code"
exit $code
)";

class SparesOfSlurm : public ::testing::Test {
 protected:
  SparesOfSlurm() { (void)folder_.script("srun", kFakeSrun); }

  [[nodiscard]] LrunProcess::Options script() const {
    return {.environment = {{"PATH", folder_.path().string() + ":" + std::getenv("PATH")},
                            {"SLURM_JOB_ID", "12"},
                            {"SLURM_JOB_NODELIST", "127.0.0.1,b,c"}}};
  }
  [[nodiscard]] static Words line(const Words& options, const std::string& program) {
    Words words{
        "--spares", "1", "-n", "1", "--grace", "5s", "--output", "raw", "--master-port", std::to_string(free_port())};
    words.insert(words.end(), options.begin(), options.end());
    for (const std::string& word : shell(program)) words.push_back(word);
    return words;
  }
  [[nodiscard]] std::string waits_for_end() const {
    return "echo rank $RANK/$WORLD_SIZE of task $TASK count $TORCHELASTIC_RESTART_COUNT.; while [ ! -e " +
           (folder_ / "end").string() + " ]; do sleep 0.1; done";
  }
  void end() const { std::ofstream(folder_ / "end") << "end\n"; }
  [[nodiscard]] std::string read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(folder_ / name).rdbuf();
    return text.str();
  }

  /// kill -9 of both processes of the launcher that the task is.
  void kill_launcher(int task) const {
    const pid_t guard = std::stoi(read("task" + std::to_string(task)));
    ::kill(guard, SIGSTOP);  // it would end by itself between the two
    for (const pid_t launcher : living_children(guard)) ::kill(launcher, SIGKILL);
    ::kill(guard, SIGKILL);
  }

  TemporaryFolder folder_;
};

TEST_F(SparesOfSlurm, TakeThePlaceOfALostNodeAndTheJobEndsWell) {
  LrunProcess lrun(line({}, waits_for_end()), script());
  ASSERT_TRUE(lrun.wait_for("rank 0/2 of task 0 count 0.") && lrun.wait_for("rank 1/2 of task 1 count 0."))
      << lrun.err();
  ASSERT_TRUE(lrun.wait_for(" is a spare: it waits until another one is lost\n")) << lrun.err();
  kill_launcher(1);
  ASSERT_TRUE(lrun.wait_for("rank 1/2 of task 2 count 0.")) << lrun.err();
  EXPECT_TRUE(contains(lrun.err(), " is lost: its launcher ended: the connection was closed; node ")) << lrun.err();
  EXPECT_TRUE(contains(lrun.err(), ", a spare, takes its place; ")) << lrun.err();
  EXPECT_TRUE(lrun.wait_for(" was a spare, and takes part now: node rank 1 of 2\n")) << lrun.err();
  ASSERT_TRUE(lrun.wait_for("all workers start again on 2 of 2 nodes: world size 2")) << lrun.err();
  end();
  const LrunEnd ended = lrun.wait();
  EXPECT_TRUE(ended.exited && ended.code == 0) << ended.code << lrun.err();
  EXPECT_EQ(read("code"), "137\n") << "srun knows no better";
  EXPECT_FALSE(contains(lrun.err(), "\x1e")) << "what launchers tell lrun is not for users: " << lrun.err();
  EXPECT_TRUE(contains(read("asked"), "--nodes=3 ")) << read("asked");
  EXPECT_TRUE(contains(read("asked"), " --no-kill --wait=0 ")) << read("asked");
}

TEST_F(SparesOfSlurm, ThatWereNotNeededLeaveTheJobItsCode) {
  LrunProcess failed(line({}, "exit $((7 * RANK))"), script());
  EXPECT_EQ(failed.wait().code, 7) << failed.err();
  EXPECT_TRUE(contains(failed.err(), " was a spare, and was not needed: the job has ended: ")) << failed.err();
  LrunProcess good(line({}, "true"), script());
  EXPECT_EQ(good.wait().code, 0) << good.err();
  EXPECT_TRUE(contains(good.err(), " was a spare, and was not needed: the job has succeeded\n")) << good.err();
}

TEST_F(SparesOfSlurm, GetTheSignalsOfTheScriptByWayOfSrun) {
  LrunProcess lrun(line({}, waits_for_end()), script());
  ASSERT_TRUE(lrun.wait_for("rank 0/2") && lrun.wait_for("rank 1/2")) << lrun.err();
  ASSERT_TRUE(lrun.wait_for(" is a spare: ")) << lrun.err();
  lrun.signal(SIGTERM);
  const LrunEnd ended = lrun.wait();
  EXPECT_TRUE(ended.exited && ended.code == 128 + SIGTERM) << ended.code << lrun.err();
}

TEST_F(SparesOfSlurm, TakeThePlaceOfTheNodeOnWhichTheLaunchersMeetToo) {
  LrunProcess lrun(line({}, waits_for_end()), script());
  ASSERT_TRUE(lrun.wait_for("rank 0/2 of task 0") && lrun.wait_for("rank 1/2 of task 1")) << lrun.err();
  ASSERT_TRUE(lrun.wait_for(" is a spare: ")) << lrun.err();
  kill_launcher(0);
  ASSERT_TRUE(lrun.wait_for("rank 0/2 of task 1 count 0.") && lrun.wait_for("rank 1/2 of task 2 count 0."))
      << lrun.err();
  end();
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
}

TEST_F(SparesOfSlurm, ThatAreTooManyAreOneErrorBeforeAnythingStarts) {
  LrunProcess lrun({"--spares", "3", "true"}, script());
  EXPECT_EQ(lrun.wait().code, 125);
  EXPECT_THAT(lrun.err(), mentions({"lrun: error: '--spares 3'", "Slurm job 12 has 3 nodes", "'--spares 2'"}));
  EXPECT_EQ(read("asked"), "");
}

TEST_F(SparesOfSlurm, AreShown) {
  LrunProcess lrun({"--dry-run", "--spares", "1", "true"}, script());
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_TRUE(contains(lrun.out(), "1 node waits")) << lrun.out();
  EXPECT_EQ(count(lrun.err(),
                  "lrun: note: a spare can replace a lost node only in a job that was submitted with "
                  "'--no-kill'"),
            1U)
      << lrun.err();
}

TEST_F(SparesOfSlurm, AreStartedByALineOfSrunThatVerboseShows) {
  LrunProcess lrun(line({"-vv"}, "true"), script());
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_TRUE(contains(lrun.err(), "lrun: note: srun is started with: srun --")) << lrun.err();
  EXPECT_TRUE(contains(lrun.err(), " --spares 1 -n 1 ")) << lrun.err();
}

}  // namespace
}  // namespace lrun::test
