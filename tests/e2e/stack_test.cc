// `lrun stack`: where the ranks of a run are, without their help and without tools.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "process/program_path.h"
#include "support/beside.h"
#include "support/launchers_of_a_job.h"
#include "support/lrun_process.h"
#include "support/temporary_folder.h"

namespace lrun::test {
namespace {

using ::testing::HasSubstr;

TEST(Stack, FoldsRanksThatAreAtTheSamePlace) {
  const TemporaryFolder no_tools;
  LrunProcess run({"-n", "4", "sh", "-c", "echo ready; [ $RANK = 2 ] && read x < fifo; exec sleep 1000"},
                  {.before_exec = [&] {
                    (void)!::chdir(no_tools.path().c_str());
                    (void)!::mkfifo("fifo", 0600);
                  }});
  ASSERT_TRUE(run.wait_for("[0] ready") && run.wait_for("[1] ready") && run.wait_for("[2] ready") &&
              run.wait_for("[3] ready"));
  ASSERT_TRUE(has_socket(run));
  std::string said;
  ASSERT_TRUE(eventually([&] {
    Beside stack(run, {"stack"}, no_tools.path().string());
    EXPECT_EQ(stack.wait().code, 0) << stack.err();
    said = stack.out();
    return said.starts_with("3 ranks are in clock_nanosleep(); rank 2 is in open");
  })) << said;
  EXPECT_THAT(said, HasSubstr("\n  native  clock_nanosleep (libc.so"));
}

/// Scripts that choose a Python need a PATH.
bool is_binary(const std::string& path) {
  std::ifstream file(path);
  return file.get() == '\x7f';
}

/// The kinds of CPython that are here.
std::vector<std::string> pythons() {
  std::vector<std::string> names{"/usr/bin/python3"};
  if (const char* const python = std::getenv("LRUN_TEST_PYTHON")) names.emplace_back(python);
  for (int minor = 9; minor <= 15; ++minor) names.push_back("python3." + std::to_string(minor));
  std::vector<std::string> found;
  for (const std::string& name : names) {
    const ProgramPath program = find_program(name, std::getenv("PATH"));
    if (program.error_number == 0 && is_binary(program.path)) found.push_back(program.path);
  }
  return found;
}

TEST(Stack, SaysWhereAPythonProgramIsWithoutItsHelpAndWithoutTools) {
  const TemporaryFolder folder;
  const TemporaryFolder no_tools;
  const std::string script = folder.script("train.py",
                                           "import os, sys\n"
                                           "def all_reduce():\n    os.read(os.pipe()[0], 1)\n"
                                           "def load():\n    os.read(os.pipe()[0], 1)\n"
                                           "def evaluate():\n    while True: pass\n"
                                           "print('ready', flush=True)\n"
                                           "[all_reduce, load, all_reduce, evaluate][int(os.environ['RANK'])]()\n");
  ASSERT_FALSE(pythons().empty());
  for (const std::string& python : pythons()) {
    SCOPED_TRACE(python);
    LrunProcess run({"-n", "4", python, script}, {.environment = {{"PATH", no_tools.path().string()}}});
    ASSERT_TRUE(run.wait_for("[0] ready") && run.wait_for("[1] ready") && run.wait_for("[2] ready") &&
                run.wait_for("[3] ready"));
    ASSERT_TRUE(has_socket(run));
    std::string said;
    EXPECT_TRUE(eventually([&] {  // 'ready' is said a moment before they read
      Beside stack(run, {"stack", "--json"});
      EXPECT_EQ(stack.wait().code, 0) << stack.err();
      said = nlohmann::json::parse(stack.out())["summary"];
      return said ==
             "2 ranks wait in all_reduce at train.py:9; rank 1 is in read() of a pipe, called from load (train.py:5); "
             "rank 3 runs evaluate (train.py:7)";
    })) << said;
    EXPECT_EQ(run.workers().size(), 4U) << "all still live";
  }
}

TEST(Stack, SaysWhyAPythonCannotBeRead) {
  const TemporaryFolder folder;
  std::filesystem::copy_file("/bin/sleep", folder.path() / "python3");
  LrunProcess run({"-n", "1", "/bin/sh", "-c", "echo ready; exec " + (folder.path() / "python3").string() + " 1000"},
                  {.environment = {{"PATH", "/nonexistent"}}});
  ASSERT_TRUE(run.wait_for("[0] ready"));
  ASSERT_TRUE(has_socket(run));
  std::string said;
  EXPECT_TRUE(eventually([&] {
    Beside stack(run, {"stack"});
    EXPECT_EQ(stack.wait().code, 0) << stack.err();
    said = stack.out();
    return said.find("\nrank 0: no Python stack: no CPython of version 3.9 or later was found in it\n") !=
           std::string::npos;
  })) << said;
}

TEST(Stack, SaysOnATerminalThatItTakesTime) {
  LrunProcess run({"-n", "1", "sh", "-c", "echo up; exec sleep 1000"});
  ASSERT_TRUE(run.wait_for("[0] up"));
  ASSERT_TRUE(has_socket(run));
  const std::map<std::string, std::string> variables{{"LRUN_STATE", run.state().string()}};
  LrunProcess stack({"stack"}, {.environment = variables, .terminal = true});
  EXPECT_EQ(stack.wait().code, 0);
  EXPECT_THAT(stack.err(), HasSubstr("'lrun stack --brief'"));
  LrunProcess brief({"stack", "--brief"}, {.environment = variables, .terminal = true});
  EXPECT_EQ(brief.wait().code, 0);
  EXPECT_THAT(brief.err(), ::testing::Not(HasSubstr("'lrun stack --brief'")));
}

TEST(Stack, IsOneLineWhereItIsToBeBrief) {
  const TemporaryFolder no_tools;
  LrunProcess run({"-n", "2", "sh", "-c", "echo ready; exec sleep 1000"});
  ASSERT_TRUE(run.wait_for("[0] ready") && run.wait_for("[1] ready"));
  ASSERT_TRUE(has_socket(run));
  std::string said;
  EXPECT_TRUE(eventually([&] {
    Beside stack(run, {"stack", "--brief"}, no_tools.path().string());
    EXPECT_EQ(stack.wait().code, 0) << stack.err();
    said = stack.out();
    return said == "2 ranks are in clock_nanosleep()\n";
  })) << said;
}

TEST(Stack, SaysThatARunWaitsToStartAgain) {
  Job job({"--num_nodes", "2", "--max-restarts", "1"});
  LrunProcess& first = job.start({"--node-rank", "0"}, {"sh", "-c", "echo ready; exec sleep 1000"});
  LrunProcess& second = job.start({"--node-rank", "1"}, {"sh", "-c", "echo ready; exec sleep 1000"});
  ASSERT_TRUE(first.wait_for("ready") && second.wait_for("ready")) << first.err() << second.err();
  second.signal(SIGKILL);
  std::string said;
  EXPECT_TRUE(eventually([&] {
    Beside stack(first, {"stack"});
    EXPECT_EQ(stack.wait().code, 0) << stack.err();
    said = stack.err() + stack.out();
    return said == "lrun: note: the run is waiting for other nodes to start again\nrank 0: has ended\n";
  })) << said;
  Beside status(first, {"status"});
  EXPECT_EQ(status.wait().code, 0);
  EXPECT_THAT(status.out(), HasSubstr("stopped by lrun"));
  first.signal(SIGTERM);
  first.wait();
}

TEST(Stack, AsksNoLeaderThatIsLost) {
  Job job({"--num_nodes", "3", "--max-restarts", "1"});
  std::vector<LrunProcess*> nodes;
  for (const char* const rank : {"0", "1", "2"}) {
    nodes.push_back(&job.start({"--node-rank", rank}, {"sh", "-c", "echo ready; exec sleep 1000"}));
  }
  for (LrunProcess* const node : nodes) ASSERT_TRUE(node->wait_for("ready")) << node->err();
  nodes[0]->signal(SIGKILL);
  std::string said;
  EXPECT_TRUE(eventually([&] {
    Beside stack(*nodes[1], {"stack", "--brief"});
    stack.wait();
    said = stack.err() + stack.out();
    return contains(said, "waiting for other nodes to start again") && !contains(said, "in time");
  })) << said;
  for (LrunProcess* const node : {nodes[1], nodes[2]}) node->signal(SIGTERM);
  for (LrunProcess* const node : {nodes[1], nodes[2]}) node->wait();
}

TEST(Stack, TakesProcessesInsteadOfARun) {
  LrunProcess run({"-n", "1", "sh", "-c", "echo ready; exec sleep 1000"});
  ASSERT_TRUE(run.wait_for("[0] ready"));
  const std::vector<pid_t> workers = living_children(run.launcher_pid());
  ASSERT_EQ(workers.size(), 1U);
  const std::string pid = std::to_string(workers.front());
  std::string said;
  ASSERT_TRUE(eventually([&] {  // 'ready' is said a moment before the shell becomes sleep
    Beside stack(run, {"stack", "--json", "--pids", "7:" + pid + ",99999999"});
    EXPECT_EQ(stack.wait().code, 0) << stack.err();
    said = stack.out();
    const auto ranks = nlohmann::json::parse(said)["ranks"];
    return ranks[0]["rank"] == 7 && ranks[0]["command"] == "sleep" && ranks[1]["state"] == "";
  })) << said;
}

TEST(Stack, NeedsARunThatIsAlive) {
  LrunProcess run({"-n", "1", "true"});
  ASSERT_EQ(run.wait().code, 0);
  Beside none(run, {"stack"});
  EXPECT_EQ(none.wait().code, 125);
  EXPECT_EQ(none.err(), "lrun: error: no run is alive in '" + run.state().string() +
                            "'\nlrun: hint: the last one was '" + run.run_folder().filename().string() +
                            "'; 'lrun report' says how it ended\n");
}

TEST(Stack, NamesTheRunsThatAreAliveWhereThereAreSeveral) {
  const TemporaryFolder state;
  const LrunProcess::Options kept{.environment = {{"LRUN_STATE", state.path().string()}}};
  LrunProcess one({"-n", "1", "sh", "-c", "echo here; exec sleep 1000"}, kept);
  LrunProcess other({"-n", "1", "sh", "-c", "echo here; exec sleep 1000"}, kept);
  ASSERT_TRUE(one.wait_for("[0] here") && other.wait_for("[0] here"));
  std::string said;
  ASSERT_TRUE(eventually([&] {
    LrunProcess stack({"stack"}, kept);
    EXPECT_TRUE(stack.wait().exited);
    said = stack.err();
    return said.starts_with("lrun: error: several runs are alive\nlrun: hint: name one: 'lrun stack RUN' with '");
  })) << said;
  for (const auto& run : std::filesystem::directory_iterator(state.path())) {
    EXPECT_THAT(said, HasSubstr("'" + run.path().filename().string() + "'"));
  }
}

}  // namespace
}  // namespace lrun::test
