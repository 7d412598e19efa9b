// Launchers of a rank each, as mpirun starts them: what they say once, and what they do when mpirun is gone. A script
// takes its part.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>

#include "support/beside.h"
#include "support/lrun_process.h"
#include "support/temporary_folder.h"
#include "support/words.h"

namespace lrun::test {
namespace {

/// 'mpirun -np 4 $TASK lrun ARGUMENTS'. With FIRST=1 task 0 runs another program, which needs no place in the script.
constexpr const char* kFakeMpirun = R"sh(#!/bin/sh
pids=
for rank in 0 1 2 3; do
  [ $rank -ge ${FIRST:-0} ] || continue
  OMPI_COMM_WORLD_RANK=$rank OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=$rank OMPI_COMM_WORLD_LOCAL_SIZE=4 \
    OMPI_MCA_orte_num_nodes=1 PMIX_NAMESPACE=$$ $TASK LRUN_PROGRAM_HERE "$@" &
  pids="$pids $!"
done
code=0
for pid in $pids; do wait $pid || code=$?; done
exit $code
)sh";

class Mpirun : public testing::Test {
 protected:
  Mpirun() {
    std::string script = kFakeMpirun;
    const std::string name = "LRUN_PROGRAM_HERE";
    script.replace(script.find(name), name.size(), LRUN_PROGRAM);
    write_program("mpirun", script);
  }

  void write_program(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    ::chmod(path(name).c_str(), 0755);
  }
  [[nodiscard]] std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  [[nodiscard]] LrunProcess::Options options(std::map<std::string, std::string> environment = {}) const {
    return {.environment = std::move(environment), .program = path("mpirun")};
  }

  TemporaryFolder folder_;
};

TEST_F(Mpirun, ThatIsKilledTakesItsLaunchersAlong) {
  for (const char* const task : {"", "sh wrapper"}) {
    std::ofstream(path("wrapper")) << "\"$@\"\ncode=$?\nexit $code\n";  // it waits for lrun
    const std::string wrapped = *task == '\0' ? "" : "sh " + path("wrapper");
    LrunProcess mpirun(shell("echo ready; exec sleep 1000"), options({{"TASK", wrapped}}));
    ASSERT_TRUE(mpirun.read_until([&] { return count(mpirun.out(), "ready") == 4; })) << mpirun.err();
    mpirun.signal(SIGKILL);
    (void)mpirun.wait();
    EXPECT_EQ(count(mpirun.err(), "which started the tasks here, is gone"), 1U) << mpirun.err();
    EXPECT_TRUE(eventually([&] { return mpirun.processes().empty(); })) << mpirun.err();
  }
}

/// A launcher that is still in its task shows that the watchers have seen the end of mpirun.
TEST_F(Mpirun, ThatIsKilledLeavesALauncherThatHasLeftItsTask) {
  constexpr const char* kTwoTasks = R"sh(#!/bin/sh
export LAUNCHER=$1 FOLDER=$2
task="env OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=1"
$task sh -c '"$LAUNCHER" sh -c "echo ready; exec sleep 1000"; exit $?' &
$task sh $FOLDER/leave "$LAUNCHER" sh -c 'echo ready; until [ -e "$FOLDER"/go ]; do sleep 0.01; done; echo went on' &
wait $!
echo has left
wait
)sh";
  write_program("mpirun", kTwoTasks);
  std::ofstream(path("stays")) << "\"$@\"\ncode=$?\nexit $code\n";
  for (const std::string& start : {std::string("setsid"), "nohup sh " + path("stays")}) {
    for (const char* const event : {"leave-now", "go"}) std::filesystem::remove(path(event));
    std::ofstream(path("leave")) << start << " \"$@\" &\nuntil [ -e $FOLDER/leave-now ]; do sleep 0.01; done\n";
    LrunProcess mpirun({LRUN_PROGRAM, folder_.path().string()}, options());
    ASSERT_TRUE(mpirun.read_until([&] { return count(mpirun.out(), "ready") == 2; })) << mpirun.err();
    std::ofstream(path("leave-now")) << "";
    ASSERT_TRUE(mpirun.read_until([&] { return contains(mpirun.out(), "has left"); })) << mpirun.err();
    mpirun.signal(SIGKILL);
    ASSERT_TRUE(mpirun.read_until([&] { return contains(mpirun.err(), "SIGTERM"); })) << mpirun.err();
    std::ofstream(path("go")) << "";
    (void)mpirun.wait();
    EXPECT_EQ(count(mpirun.out(), "went on"), 1U) << mpirun.err();
    EXPECT_EQ(count(mpirun.err(), "which started the tasks here, is gone"), 1U) << mpirun.err();
    EXPECT_TRUE(eventually([&] { return mpirun.processes().empty(); }));
  }
}

TEST_F(Mpirun, ShowsThePlanOnce) {
  for (const char* const format : {"--dry-run", "--dry-run=json"}) {
    LrunProcess mpirun({format, "true"}, options());
    EXPECT_EQ(mpirun.wait().code, 0) << mpirun.err();
    EXPECT_EQ(count(mpirun.out(), "TORCHELASTIC_RUN_ID"), 1U) << mpirun.out();
  }
}

TEST_F(Mpirun, IsNeededToRunItsJobAgain) {
  LrunProcess mpirun({"true"}, options());
  ASSERT_EQ(mpirun.wait().code, 0) << mpirun.err();
  const std::string id = mpirun.run_folder().parent_path().filename().string();
  Beside again(mpirun, {"again"});
  EXPECT_EQ(again.wait().code, 125);
  EXPECT_EQ(again.err(), "lrun: error: each of the 4 ranks of run '" + id +
                             "' had an lrun of its own, and this would be one rank\nlrun: hint: write 'mpirun -np 4 "
                             "lrun again " +
                             id + "', or the same with srun\n");
  Beside shown(mpirun, {"again", "--dry-run"});
  EXPECT_EQ(shown.wait().code, 0) << shown.err();
  LrunProcess::Options same = options({{"LRUN_STATE", mpirun.state().string()}});
  LrunProcess all({"again", id}, same);
  EXPECT_EQ(all.wait().code, 0) << all.err();
  EXPECT_EQ(count(all.err(), "lrun: note: again: "), 1U) << all.err();
}

TEST_F(Mpirun, WhoseFirstTaskIsNoLrunIsToldOfByTheNextOne) {
  LrunProcess mpirun({"--rdzv-conf", "read_timeout=1", "true"}, options({{"FIRST", "1"}}));
  EXPECT_EQ(mpirun.wait().code, 125);
  EXPECT_EQ(count(mpirun.err(), "lrun: error: the ranks did not meet: "), 1U) << mpirun.err();
  EXPECT_EQ(count(mpirun.err(), "lrun: hint: "), 1U) << mpirun.err();
}

}  // namespace
}  // namespace lrun::test
