#include "plan/show_plan.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/split.h"
#include "planning.h"

namespace lrun::launcher {
namespace {

/// Compares with tests/golden/plan/`name`; LRUN_UPDATE_GOLDEN=1 in the environment writes it anew.
void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = std::string(LRUN_GOLDEN) + "/" + name;
  if (std::getenv("LRUN_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  std::ifstream file(path);
  std::stringstream golden;
  golden << file.rdbuf();
  EXPECT_EQ(text, golden.str()) << "differs from " << path;
}

LaunchPlan three_devices() {
  LaunchRequest request = request_for("3");
  request.seed = {7, Source::kFlag, "--seed"};
  return plan_of(request, cpu_node());
}

LaunchPlan eight_on_four_nodes() {
  LaunchRequest request = request_for("8");
  request.num_nodes = {4, Source::kFlag, "--num_nodes"};
  return plan_of(request, gpu_node(8));
}

const Environment kInsideSrun =
    environment_with({{"PATH", "/bin"}, {"SLURM_PROCID", "0"}, {"LRUN_JOB_SECRET", "hush"}});

TEST(ShowPlan, TextOfThreeDevicesShowsTheirEnvironments) {
  expect_golden("three-devices.txt", show_plan_text(three_devices(), kInsideSrun));
}

TEST(ShowPlan, TextOf32RanksFitsAScreen) {
  const std::string text = show_plan_text(eight_on_four_nodes(), Environment());
  expect_golden("eight-devices-four-nodes.txt", text);
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 30) << text;
}

TEST(ShowPlan, TextOfAThousandNodesFitsAScreenToo) {
  LaunchRequest request = request_for("8");
  request.num_nodes = {1000, Source::kFlag, "--num_nodes"};
  const std::string text = show_plan_text(plan_of(request, cpu_node()), Environment());
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 36) << text;
  EXPECT_NE(text.find("ranks 7992-7999"), std::string::npos) << text;
}

TEST(ShowPlan, TextHasTheMasterOfAStaticRendezvousAndTheFewestNodes) {
  LaunchRequest request = request_for_nodes("1", 4);
  request.min_nodes = 2;
  request.rendezvous.endpoint = endpoint_of("node0", 29500);
  const std::string text = show_plan_text(plan_of(request, cpu_node()), Environment());
  EXPECT_NE(text.find("\nmaster        node0, port 29500"), std::string::npos) << text;
  EXPECT_NE(text.find("\nevery worker:\n  MASTER_ADDR=node0 MASTER_PORT=29500 WORLD_SIZE=4 "), std::string::npos)
      << text;
  EXPECT_NE(text.find("\nnodes         2 to 4, shown for 4"), std::string::npos) << text;
  const auto json = nlohmann::json::parse(show_plan_json(plan_of(request, cpu_node()), Environment()));
  EXPECT_EQ(json.at("master_addr"), "node0");
  EXPECT_EQ(json.at("master_port"), 29500);
  EXPECT_EQ(json.at("nodes").at(0).at("workers").at(0).at("environment").at("MASTER_PORT"), "29500");
  request.rendezvous.backend = backend_flag("c10d");
  EXPECT_NE(show_plan_text(plan_of(request, cpu_node()), Environment()).find("\nmaster        chosen at start\n"),
            std::string::npos)
      << "node 0 is chosen later";
}

TEST(ShowPlan, TextHasEightyColumnsAndNoNamesOfHostsThatNobodyHasNamed) {
  LaunchRequest request = request_for_nodes("2", 2);
  request.rendezvous.endpoint = endpoint_of("a-host-with-a-long-name.of.a.cluster.example.com", 29500);
  request.command = {"./train", "--data",     "/a/path/that/is/long/enough", "--and", "a few", "more",
                     "words",   "$local_rank"};
  const std::string text = show_plan_text(plan_of(request, cpu_node()), Environment());
  for (const std::string& line : split_lines(text)) EXPECT_LE(line.size(), 80U) << line;
  EXPECT_NE(text.find("\n  host  RANK=0 "), std::string::npos) << text;
  EXPECT_NE(text.find("\n        RANK=2 "), std::string::npos) << text;
  const auto json = nlohmann::json::parse(show_plan_json(plan_of(request, cpu_node()), Environment()));
  EXPECT_EQ(json.at("nodes").at(0).at("name"), "host");
  EXPECT_TRUE(json.at("nodes").at(1).at("name").is_null());
}

TEST(ShowPlan, TextNamesChosenGpusAndThreads) {
  AllocatedNode node = gpu_node(4);
  node.gpus.gpus[0].lost = true;
  node.gpus.detail = "GPU 0 is lost";
  LaunchRequest request = request_for("2,3");
  request.strategy = strategy_flag("ddp2");
  request.master_port = {29500, Source::kFlag, "--master-port"};
  request.command = {"./train", "it's $local_rank"};
  const Environment environment = environment_with({{"OMP_NUM_THREADS", "6"}});
  expect_golden("chosen-gpus.txt", show_plan_text(plan_of(request, node, environment), environment));
}

TEST(ShowPlan, SaysOfPythonWithAStrategyOfLiblrunWhatARunWould) {
  LaunchRequest request = request_for("2");
  request.strategy = strategy_flag("dp");
  request.command = {"train.py"};
  request.dry_run = DryRun::kText;
  EXPECT_NE(refusal_of([&] { plan_of(request, cpu_node()); }), "");
  request.of_liblrun = true;
  EXPECT_FALSE(plan_of(request, cpu_node()).watches_for_liblrun);
}

TEST(ShowPlan, JsonIsWhatTheGoldenSays) {
  expect_golden("three-devices.json", show_plan_json(three_devices(), kInsideSrun));
}

TEST(ShowPlan, JsonHasEveryRanksArgumentsAndEnvironment) {
  const auto json = nlohmann::json::parse(show_plan_json(eight_on_four_nodes(), Environment()));
  EXPECT_EQ(json.at("schema"), 1);
  EXPECT_EQ(json.at("world_size"), 32);
  ASSERT_EQ(json.at("nodes").size(), 4U);
  int rank = 0;
  for (const auto& node : json.at("nodes")) {
    for (const auto& worker : node.at("workers")) {
      const auto& environment = worker.at("environment");
      EXPECT_EQ(environment.at("RANK"), std::to_string(rank));
      EXPECT_EQ(environment.at("LOCAL_RANK"), std::to_string(rank % 8));
      EXPECT_EQ(environment.at("NODE_RANK"), std::to_string(rank / 8));
      EXPECT_EQ(environment.at("WORLD_SIZE"), "32");
      EXPECT_EQ(environment.at("LRUN_DEVICES"), "cuda:" + std::to_string(rank % 8));
      EXPECT_TRUE(environment.at("MASTER_ADDR").is_null());
      EXPECT_TRUE(environment.at("MASTER_PORT").is_null());
      EXPECT_EQ(worker.at("argv"), (std::vector<std::string>{"./train", "--lr", "0.1"}));
      ++rank;
    }
  }
  EXPECT_EQ(rank, 32);
}

TEST(ShowPlan, NeverShowsASecretOrWhatWasInherited) {
  for (const std::string& text :
       {show_plan_text(three_devices(), kInsideSrun), show_plan_json(three_devices(), kInsideSrun)}) {
    EXPECT_EQ(text.find("hush"), std::string::npos);
    EXPECT_EQ(text.find("/bin"), std::string::npos);
  }
}

TEST(ShowPlan, TellsHowWorkersAreSetUp) {
  LaunchRequest request = request_for("2");
  request.setup.folder = flag("--chdir", "job");
  request.setup.environment = {{EnvironmentChange::Kind::kSet, "A", "1 2", Source::kFlag, "--env"},
                               {EnvironmentChange::Kind::kUnset, "B", "", Source::kFlag, "--unset"},
                               {EnvironmentChange::Kind::kPassOn, "C", "", Source::kConfig, "lrun.toml:3: env"}};
  request.setup.limits = {{RLIMIT_CORE, ResourceLimit::kUnlimited, std::nullopt, Source::kFlag, "--rlimit"}};
  request.command = {"train.py"};
  request.setup.preload = flag("--preload", "torch");
  request.setup.memory = {MemoryLimit{3ULL << 29}, Source::kFlag, "--memory-dir"};
  const LaunchPlan plan = plan_of(request, cpu_node(), environment_with({{"C", "3"}}));
  EXPECT_NE(show_plan_text(plan, Environment())
                .find("folder        job                               --chdir\n"
                      "variable      A='1 2'                           --env\n"
                      "variable      without B                         --unset\n"
                      "variable      C as it is here                   lrun.toml:3: env\n"
                      "limit         core=unlimited                    --rlimit\n"
                      "preload       torch                             --preload\n"
                      "memory folder 1.5 GiB                           --memory-dir\n"),
            std::string::npos)
      << show_plan_text(plan, Environment());
  const auto json = nlohmann::json::parse(show_plan_json(plan, Environment())).at("setup");
  EXPECT_EQ(json.at("chdir"), "job");
  EXPECT_EQ(json.at("environment").dump(), R"({"A":"1 2","B":null})");
  EXPECT_EQ(json.at("limits").dump(), R"(["core=unlimited"])");
  EXPECT_EQ(json.at("preload"), "torch");
  EXPECT_EQ(json.at("memory_dir"), 3ULL << 29);
}

TEST(ShowPlan, JsonTakesBytesThatAreNotText) {
  LaunchRequest request = request_for("2");
  request.command = {"./train", "\xff\xfe"};
  const auto json = nlohmann::json::parse(show_plan_json(plan_of(request, cpu_node()), Environment()));
  EXPECT_EQ(json.at("argv").at(1), "\xef\xbf\xbd\xef\xbf\xbd") << "U+FFFD twice";
}

}  // namespace
}  // namespace lrun::launcher
