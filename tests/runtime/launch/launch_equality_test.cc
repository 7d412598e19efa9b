// Ranks that a program starts itself train the parameters of one process on the whole batch: tests/runtime/README.md.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/launch/port_reservation.h"
#include "support/lrun_process.h"

namespace lrun::detail {
namespace {

using test::LrunProcess;

/// Of each node. Each rank loads LibTorch, which takes a second below a sanitizer: fewer there.
int most_devices() {
  const char* text = std::getenv("LRUN_TEST_MOST_DEVICES");
  return text == nullptr ? 4 : std::stoi(text);
}

const std::vector<std::string> kMethods = {"ddp_spawn", "ddp_fork"};

struct Case {
  std::string method;
  int nodes = 1;
};

/// The output of the first node's program; `devices` of each node.
std::string output_of(const Case& of, int devices) {
  const PortReservation port;
  std::vector<std::unique_ptr<LrunProcess>> programs;
  for (int node = 0; node < of.nodes; ++node) {
    LrunProcess::Options options{.environment = {{"OMP_NUM_THREADS", "1"}}, .program = LRUN_TEST_EQUALITY_PROGRAM};
    if (of.nodes > 1) {
      options.environment.insert({{"NODE_RANK", std::to_string(node)},
                                  {"WORLD_SIZE", std::to_string(of.nodes * devices)},
                                  {"MASTER_ADDR", "127.0.0.1"},
                                  {"MASTER_PORT", std::to_string(port.port())}});
    }
    programs.push_back(
        std::make_unique<LrunProcess>(std::vector{of.method, std::to_string(devices)}, std::move(options)));
  }
  for (const auto& program : programs) EXPECT_EQ(program->wait().code, 0) << program->out() << program->err();
  return programs.front()->out();
}

class LaunchEquality : public testing::TestWithParam<Case> {};

TEST_P(LaunchEquality, OfAnMlpACnnAndAnEmbedding) {
  for (int devices = 1; devices <= most_devices(); ++devices) {
    const std::string output = output_of(GetParam(), devices);
    std::istringstream words(output);
    std::map<std::string, double> differences;
    std::string name;
    for (double difference = 0; words >> name >> difference;) differences[name] = difference;
    EXPECT_EQ(differences.size(), 3U) << devices << " devices a node: " << output;
    for (const auto& [net, difference] : differences)
      EXPECT_LE(difference, 1e-6) << devices << " devices a node: " << net;
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const auto& method : kMethods) {
    for (const int nodes : {1, 2}) all.push_back({method, nodes});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Methods, LaunchEquality, testing::ValuesIn(cases()), [](const auto& test_case) {
  return test_case.param.method + "On" + std::to_string(test_case.param.nodes) + "Nodes";
});

TEST(LaunchEquality, IsWhatTheReadmeSays) {
  std::string rows;
  for (const auto& [method, nodes] : cases()) {
    rows += "| " + method + " | 1, 2, 3, 4 | " + std::to_string(nodes) + " | equal | equal | equal |\n";
  }
  std::ifstream file(LRUN_TEST_SOURCE "/../README.md");
  const std::string readme{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  EXPECT_NE(readme.find(rows), std::string::npos) << "tests/runtime/README.md should have:\n" << rows;
}

}  // namespace
}  // namespace lrun::detail
