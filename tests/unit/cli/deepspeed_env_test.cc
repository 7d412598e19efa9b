// The inputs that lrun reads like the launcher of DeepSpeed: the file of variables, and devices of this host by include
// and exclude.
#include "cli/deepspeed_env.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/user_error.h"
#include "multihost/named_hosts.h"
#include "parse_support.h"
#include "plan/device_choice.h"
#include "support/temporary_folder.h"

namespace lrun::launcher {
namespace {

std::vector<std::string> read(const std::string& text) {
  std::vector<std::string> values;
  for (const GivenValue& given : parse_deepspeed_env(text, "f")) values.push_back(given.text);
  return values;
}

std::string said_of(const std::string& text) {
  try {
    (void)parse_deepspeed_env(text, "f");
  } catch (const UserError& error) {
    return error.what();
  }
  return "(accepted)";
}

TEST(DeepSpeedEnv, IsAVariableALine) {
  EXPECT_EQ(read("NCCL_IB_DISABLE=1\nA = b c = d \r\n\n# no\nEMPTY=\n"),
            (std::vector<std::string>{"NCCL_IB_DISABLE=1", "A=b c = d", "EMPTY="}));
  EXPECT_THAT(said_of("A=1\nexport\n"), mentions({"2", "'export'", "'NAME=VALUE'"}));
  EXPECT_THAT(said_of("=1"), mentions({"1", "'=1'", "'NAME=VALUE'"}));
}

class DeepSpeedFiles : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_.path() / name) << text; }

  /// The variables that workers are given: 'A=1 B=2'.
  [[nodiscard]] std::string given(const std::vector<std::string>& options, Variables variables = {}) const {
    variables.emplace("HOME", folder_.path().string());
    std::vector<std::string> words = options;
    words.emplace_back("p");
    ParsedCommandLine parsed = parse(words);
    take_deepspeed_env(parsed, Environment(std::move(variables)));
    std::string text;
    for (const EnvironmentChange& change : parsed.request.setup.environment) {
      text += (text.empty() ? "" : " ") + change.name + "=" + change.value;
    }
    return text;
  }

  test::TemporaryFolder folder_;
};

TEST_F(DeepSpeedFiles, AreReadUnderItsStrategyAlone) {
  write(".deepspeed_env", "A=1\nB=2\n");
  write("other", "A=3\n");
  EXPECT_EQ(given({"--strategy", "deepspeed"}), "A=1 B=2");
  EXPECT_EQ(given({"--strategy", "ddp"}), "");
  EXPECT_EQ(given({"--strategy", "deepspeed"}, {{"DS_ENV_FILE", "other"}}), "A=3");
  EXPECT_EQ(given({"--strategy", "deepspeed"}, {{"DS_ENV_FILE", "none"}}), "");
}

TEST_F(DeepSpeedFiles, GiveWayToOptions) {
  write(".deepspeed_env", "A=1\nB=2\n");
  EXPECT_EQ(given({"--strategy", "deepspeed", "--env", "B=mine"}), "B=mine A=1");
}

TEST_F(DeepSpeedFiles, CannotSetWhatLrunGives) {
  write(".deepspeed_env", "RANK=1\n");
  try {
    (void)given({"--strategy", "deepspeed"});
    FAIL() << "RANK was taken";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find(".deepspeed_env:1: env = RANK=1"), std::string::npos) << error.what();
  }
}

Allocation host_with(int gpus) {
  AllocatedNode node{.name = "host"};
  for (int index = 0; index < gpus; ++index) {
    node.gpus.gpus.push_back({.index = index, .visible_as = std::to_string(index)});
  }
  return {{node}, "this host", "nothing names other nodes"};
}

/// The devices that the only node is to use, or the refusal.
std::string selected(const std::vector<std::string>& options, int gpus) {
  std::vector<std::string> words = options;
  words.emplace_back("p");
  const LaunchRequest request = request_of(words);
  Allocation allocation = host_with(gpus);
  try {
    if (!named_hosts(request, Environment()).empty()) return "(hosts)";
    select_devices_here(request, allocation);
  } catch (const UserError& error) {
    return error.what();
  }
  return text_of(allocation.nodes.front().devices);
}

TEST(DevicesOfLocalhost, AreThoseThatAreIncluded) {
  EXPECT_EQ(selected({"--include", "localhost:1,3"}, 4), "1,3");
  EXPECT_EQ(selected({"--include", "localhost:1"}, 4), "1,");
  EXPECT_EQ(selected({"--include", "localhost"}, 4), "4");
  EXPECT_EQ(selected({"--exclude", "localhost:0"}, 4), "1,2,3");
  EXPECT_EQ(selected({}, 4), "");
}

TEST(DevicesOfLocalhost, AreRefusedWhereTheyAreNotThereOrSaidTwice) {
  EXPECT_EQ(selected({"--include", "localhost:4"}, 4), "'--include localhost:4': host 'localhost' has 4 devices");
  EXPECT_EQ(selected({"--include", "a:1"}, 4), "'--include' selects hosts, and none are named");
  EXPECT_EQ(selected({"--include", "localhost@a:1"}, 4), "'--include' selects hosts, and none are named");
  EXPECT_EQ(selected({"--include", "localhost:1", "--devices", "1"}, 4),
            "'--include localhost:1' and '--devices 1' both say which devices to use");
  EXPECT_EQ(selected({"--include", "localhost:1", "--num_nodes", "2"}, 4),
            "'--include localhost:1' selects devices of this host, and the run is on several");
}

TEST(DevicesOfLocalhost, AreNamedByAHintThatWorks) {
  const LaunchRequest request = request_of({"--include", "localhost:0", "--accelerator", "cpu", "p"});
  Allocation allocation = host_with(1);
  select_devices_here(request, allocation);
  LaunchRequest of_node = request;
  of_node.devices = {allocation.nodes.front().devices, Source::kFlag, allocation.nodes.front().devices_origin};
  try {
    (void)choose_devices(of_node, allocation.nodes.front());
    FAIL() << "a GPU was taken";
  } catch (const UserError& error) {
    EXPECT_EQ(error.hint(), "use '--devices 2' for two CPU ranks, or '--accelerator gpu'");
  }
}

}  // namespace
}  // namespace lrun::launcher
