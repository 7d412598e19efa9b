#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "support/lrun_process.h"

namespace lrun::test {
namespace {

/// `lrun words...` beside a run, among whose runs it looks.
class Beside : public LrunProcess {
 public:
  Beside(const LrunProcess& run, std::vector<std::string> words)
      : LrunProcess(std::move(words), {.environment = {{"LRUN_STATE", run.state().string()}}}) {}
};

void wait_for_socket(const LrunProcess& run) {
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(run.run_folder() / "control.sock"); }));
}

TEST(Status, SaysWhatRunsAndWhatEachRankPrintedLast) {
  LrunProcess run({"-n", "3", "sh", "-c", "echo step $RANK; [ $RANK = 1 ] && exit 0; exec sleep 1000"});
  ASSERT_TRUE(run.wait_for("[0] step 0") && run.wait_for("[1] step 1") && run.wait_for("[2] step 2"));
  wait_for_socket(run);
  const std::string id = run.run_folder().filename().string();
  std::string said;
  ASSERT_TRUE(eventually([&] {
    Beside status(run, {"status"});
    EXPECT_EQ(status.wait().code, 0) << status.err();
    said = status.out();
    return said.find("rank 1  exited with code 0  step 1") != std::string::npos;
  })) << said;
  EXPECT_EQ(said.find("run " + id + " (pid " + std::to_string(run.pid()) + "): running for "), 0U) << said;
  EXPECT_NE(said.find(", attempt 1, world size 3, ddp: sh -c 'echo step $RANK; "), std::string::npos) << said;
  EXPECT_NE(said.find("  rank 2  running             step 2\n"), std::string::npos) << said;
}

TEST(Status, IsJsonForPrograms) {
  LrunProcess run({"-n", "2", "sh", "-c", "echo here; exec sleep 1000"});
  ASSERT_TRUE(run.wait_for("[0] here"));
  wait_for_socket(run);
  Beside status(run, {"status", "--json", run.run_folder().filename().string()});
  ASSERT_EQ(status.wait().code, 0) << status.err();
  const auto json = nlohmann::json::parse(status.out());
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["runs"][0]["pid"], run.pid());
  EXPECT_EQ(json["runs"][0]["workers"][0]["last_line"], "here");
  EXPECT_TRUE(json["silent"].empty());
}

TEST(Status, OfARunThatIsOverIsOneLineAndAHint) {
  LrunProcess run({"-n", "1", "true"});
  ASSERT_EQ(run.wait().code, 0);
  const std::string id = run.run_folder().filename().string();
  Beside status(run, {"status", id});
  EXPECT_EQ(status.wait().code, 125);
  EXPECT_EQ(status.err().find("lrun: error: run '" + id + "' has ended\nlrun: hint: "), 0U) << status.err();
  Beside none(run, {"status"});
  EXPECT_EQ(none.wait().code, 0);
  EXPECT_EQ(none.out(), "no run is alive in '" + run.state().string() + "'\n");
  Beside unknown(run, {"status", "nope"});
  EXPECT_EQ(unknown.wait().code, 125);
  EXPECT_EQ(unknown.err(), "lrun: error: no run 'nope' in '" + run.state().string() +
                               "'\nlrun: hint: the last ones are '" + id + "'\n");
}

TEST(Status, ReportsALauncherThatDoesNotAnswer) {
  LrunProcess run({"-n", "1", "sh", "-c", "echo ready; exec sleep 1000"});
  ASSERT_TRUE(run.wait_for("[0] ready"));
  wait_for_socket(run);
  const pid_t launcher = run.launcher_pid();
  ::kill(launcher, SIGSTOP);
  Beside status(run, {"status"});
  EXPECT_EQ(status.wait().code, 125);
  EXPECT_NE(status.err().find("is alive and does not answer"), std::string::npos) << status.err();
  ::kill(launcher, SIGCONT);
  run.signal(SIGTERM);
  run.wait();
}

}  // namespace
}  // namespace lrun::test
