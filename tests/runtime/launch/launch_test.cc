// Programs that start their own ranks: what comes back from them, and where they stand. With launch_endings_test.cc and
// placement_test.cc every cell of the comparison in docs/launch_from_code.md.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/split.h"
#include "runtime/launch/port_reservation.h"
#include "support/lrun_process.h"

namespace lrun::detail {
namespace {

using test::LrunProcess;

/// stdout of a launch_program that ends well.
std::string output_of(const std::string& mode, const std::string& method, int ranks,
                      LrunProcess::Options options = {}) {
  LrunProcess program({mode, method, std::to_string(ranks)}, std::move(options));
  const test::LrunEnd end = program.wait();
  EXPECT_TRUE(end.exited && end.code == 0) << end.code << " " << end.signal_number << "\n"
                                           << program.out() << program.err();
  return program.out();
}

/// The same training, where another launcher has started the ranks.
std::string output_under_a_launcher(int ranks) {
  const PortReservation port;
  std::vector<std::unique_ptr<LrunProcess>> processes;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::map<std::string, std::string> variables = {{"RANK", std::to_string(rank)},
                                                          {"WORLD_SIZE", std::to_string(ranks)},
                                                          {"LOCAL_RANK", std::to_string(rank)},
                                                          {"LOCAL_WORLD_SIZE", std::to_string(ranks)},
                                                          {"MASTER_ADDR", "127.0.0.1"},
                                                          {"MASTER_PORT", std::to_string(port.port())},
                                                          {"OMP_NUM_THREADS", "1"}};
    processes.push_back(std::make_unique<LrunProcess>(std::vector<std::string>{"train", "ddp_spawn"},
                                                      LrunProcess::Options{.environment = variables}));
  }
  for (const auto& process : processes) {
    const test::LrunEnd end = process->wait();
    EXPECT_TRUE(end.exited && end.code == 0) << process->out() << process->err();
  }
  return processes[0]->out();
}

class Launch : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Methods, Launch, testing::Values("ddp_spawn", "ddp_fork"),
                         [](const auto& method) { return method.param; });

TEST_P(Launch, ReturnsTheFunctionsResultOfRankZero) {
  EXPECT_EQ(output_of("result", GetParam(), 2), "40.5 rank 0 3\n");
}

/// Parameters and buffers come back, bit for bit, and gradients do not.
TEST_P(Launch, GivesTheProgramWhatDdpWouldHaveTrained) {
  for (const int ranks : {2, 4}) {
    const std::string expected = output_under_a_launcher(ranks);
    const std::string actual = output_of("train", GetParam(), ranks, {.environment = {{"OMP_NUM_THREADS", "1"}}});
    const auto state_of = [](const std::string& output) { return output.substr(0, output.find("training ")); };
    EXPECT_GT(split_lines(actual).size(), 8U) << actual;  // loss, four parameters, three buffers
    EXPECT_EQ(state_of(actual), state_of(expected)) << ranks;
    EXPECT_NE(actual.find("training 0\n"), std::string::npos) << actual;
    EXPECT_NE(expected.find("training 1\n"), std::string::npos) << expected;
  }
}

TEST_P(Launch, TellsEveryRankItsWorld) {
  const std::string output =
      output_of("world", GetParam(), 4, {.environment = {{"LRUN_SEED", "9"}, {"OMP_NUM_THREADS", "1"}}});
  for (int rank = 0; rank < 4; ++rank) {
    const std::string text = std::to_string(rank);
    EXPECT_NE(output.find("rank " + text + " of 4, local " + text +
                          " of 4, node 0 of 1, strategy ddp, device cpu, seed 9, threads 1, call 0\n"),
              std::string::npos)
        << output;
  }
  EXPECT_TRUE(output.ends_with("after\n")) << output;
}

/// Code before the call runs in every spawned rank and in no forked one; code after it in no rank.
TEST_P(Launch, RunsWhatStandsAroundItAsItsMethodSays) {
  const std::string output = output_of("world", GetParam(), 2);
  const auto count = [&output](const std::string& line) {
    const auto lines = split_lines(output);
    return std::count(lines.begin(), lines.end(), line);
  };
  EXPECT_EQ(count("before"), GetParam() == "ddp_spawn" ? 3 : 1) << output;
  EXPECT_EQ(count("after"), 1) << output;
}

TEST_P(Launch, GoesOnWithWhatAnEarlierOneLeft) { EXPECT_EQ(output_of("twice", GetParam(), 2), "10 20 20\n"); }

TEST_P(Launch, WorksAfterOneThatFailed) {
  const std::string once = "rank 0 failed with 1\n";  // a spawned rank is told of the first launch by this line, too
  EXPECT_EQ(output_of("again", GetParam(), 1), (GetParam() == "ddp_spawn" ? once : "") + once + "this time\n");
}

TEST_P(Launch, ThrowsInRanksWhatAnEarlierCallThrewInTheProgram) {
  const std::string thrown = "the timeout of a launch is negative\n";
  EXPECT_EQ(output_of("refused", GetParam(), 2), thrown + thrown);
}

/// A forked rank has the handlers of the program, which are the program's alone to run.
TEST_P(Launch, RunsExitHandlersInProcessesThatExecutedTheProgram) {
  std::vector<std::string> lines = split_lines(output_of("exit", GetParam(), 2));
  std::ranges::sort(lines);
  std::vector<std::string> expected = {"handler of the program", "static of the program"};
  if (GetParam() == "ddp_spawn") {
    expected = {"handler of rank 0", "handler of rank 1", "handler of the program",
                "static of rank 0",  "static of rank 1",  "static of the program"};
  }
  EXPECT_EQ(lines, expected);
}

TEST_P(Launch, MayComeFromAnExitHandler) { EXPECT_EQ(output_of("late", GetParam(), 2), "late rank 0\n"); }

TEST_P(Launch, LeavesNeitherDescriptorsNorChildren) {
  EXPECT_EQ(output_of("leak", GetParam(), 2), "0 descriptors more, no child\n");
}

/// Two programs, each with the ranks of one node, find each other by the first node's address.
TEST_P(Launch, JoinsTheRanksOfSeveralNodes) {
  const PortReservation port;
  std::vector<std::unique_ptr<LrunProcess>> nodes;
  for (const std::string node : {"0", "1"}) {
    const std::map<std::string, std::string> variables = {{"NODE_RANK", node},
                                                          {"WORLD_SIZE", "4"},
                                                          {"MASTER_ADDR", "127.0.0.1"},
                                                          {"MASTER_PORT", std::to_string(port.port())}};
    nodes.push_back(std::make_unique<LrunProcess>(std::vector<std::string>{"world", GetParam(), "2"},
                                                  LrunProcess::Options{.environment = variables}));
  }
  for (std::size_t node = 0; node < 2; ++node) {
    EXPECT_EQ(nodes[node]->wait().code, 0) << nodes[node]->out() << nodes[node]->err();
    for (std::size_t local = 0; local < 2; ++local) {
      const std::string line = "rank " + std::to_string(2 * node + local) + " of 4, local " + std::to_string(local) +
                               " of 2, node " + std::to_string(node) + " of 2, ";
      EXPECT_NE(nodes[node]->out().find(line), std::string::npos) << nodes[node]->out();
    }
  }
}

TEST_P(Launch, RunsInPlaceWhereALauncherHasStartedTheRanks) {
  LrunProcess program(
      {"world", GetParam(), "4"},
      {.environment = {{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"LRUN_DEVICES", "cpu"}, {"LRUN_STRATEGY", "ddp"}}});
  EXPECT_EQ(program.wait().code, 0) << program.out() << program.err();
  EXPECT_EQ(split_lines(program.out()).size(), 3U) << program.out();
  EXPECT_NE(program.out().find("rank 0 of 1, "), std::string::npos) << program.out();
}

TEST(LaunchByDefault, SpawnsOutsideOfInterpreters) {
  const std::string output = output_of("world", "default", 2);
  EXPECT_TRUE(output.starts_with("before\nbefore\n") || output.find("before\n", 7) != std::string::npos) << output;
}

/// `lrun --strategy ddp_spawn` gives one process all devices of the node.
TEST(LaunchBelowTheLauncher, StartsARankForEachDeviceOfTheNode) {
  const PortReservation port;
  LrunProcess program({"world"}, {.environment = {{"RANK", "0"},
                                                  {"WORLD_SIZE", "1"},
                                                  {"LOCAL_RANK", "0"},
                                                  {"LOCAL_WORLD_SIZE", "1"},
                                                  {"MASTER_ADDR", "127.0.0.1"},
                                                  {"MASTER_PORT", std::to_string(port.port())},
                                                  {"LRUN_DEVICES", "cpu,cpu,cpu"},
                                                  {"LRUN_STRATEGY", "ddp_fork"}}});
  EXPECT_EQ(program.wait().code, 0) << program.out() << program.err();
  for (const std::string rank : {"0", "1", "2"}) {
    EXPECT_NE(
        program.out().find("rank " + rank + " of 3, local " + rank + " of 3, node 0 of 1, strategy ddp, device cpu"),
        std::string::npos)
        << program.out();
  }
}

}  // namespace
}  // namespace lrun::detail
