#include "lrun/session.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <lrun/error.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/support/layout.h"

namespace lrun::detail {
namespace {

using test::Layout;
using test::run_layout;
using test::run_sessions;

std::string refusal(const SessionOptions& options) {
  try {
    Session session(options);
    return "accepted";
  } catch (const Unsupported& error) {
    return error.what();
  }
}

TEST(Session, AloneIsAWorldOfOne) {
  Session session({.world = World()});
  EXPECT_EQ(session.rank(), 0);
  EXPECT_EQ(session.world_size(), 1);
  EXPECT_TRUE(session.is_rank_zero());
  EXPECT_EQ(session.strategy(), "ddp");
  EXPECT_EQ(session.device(), at::Device(at::kCPU));
  EXPECT_EQ(session.seed(), 0U);
  EXPECT_EQ(session.effective_batch_size(7), 7);
  EXPECT_EQ(session.all_reduce(2.5, ReduceOp::kSum), 2.5);
  session.barrier();
}

TEST(Session, AloneMeetsNobodyWhateverTheBackend) {
  for (const std::string backend : {"shm", "gloo", "shm+gloo", "auto", "single"}) {
    Session session({.world = World(), .backend = backend, .timeout = std::chrono::seconds(5)});
    EXPECT_EQ(session.all_reduce(2.5, ReduceOp::kSum), 2.5) << backend;
  }
  EXPECT_EQ(refusal({.world = World(), .backend = "shn"}).substr(0, 21), "unknown backend 'shn'");
}

TEST(Session, RefusesWhatItCannotDoBeforeItJoins) {
  bool joined = false;
  SessionOptions options;
  options.world = World();
  options.connect = [&](const World&) -> std::unique_ptr<Collectives> { throw std::logic_error("joined"); };
  options.strategy = "deepspeed";
  EXPECT_EQ(refusal(options), "strategy 'deepspeed' is for programs written for DeepSpeed: use 'ddp_sharded' or 'ddp'");
  options.strategy = std::nullopt;
  options.world->strategy = "tpu";
  EXPECT_EQ(refusal(options), "strategy 'tpu' is for programs written for torch_xla: use 'ddp'");
  options.world->strategy = "";
  const std::string on_cpus = "; on CPUs: lrun --accelerator cpu, or SessionOptions::devices = {\"cpu\"}";
  options.world->devices = {"xpu:0"};
  EXPECT_EQ(refusal(options), "device 'xpu:0' is of a kind that this LibTorch was built without" + on_cpus);
  options.devices = {"gpu:0"};
  EXPECT_EQ(refusal(options), "device 'gpu:0' is none that LibTorch knows: it has names such as 'cuda:1'" + on_cpus);
  EXPECT_FALSE(joined);
}

TEST(Session, RefusesAGroupThatDoesNotFitItsWorld) {
  auto group = make_thread_group(2);
  SessionOptions options;
  options.world = World();
  options.world->world_size = 2;
  options.connect = [&](const World&) { return std::move(group[1]); };
  EXPECT_THROW(Session{options}, std::invalid_argument) << "rank 1 for rank 0";
  options.connect = [](const World&) { return nullptr; };
  EXPECT_THROW(Session{options}, std::invalid_argument);
}

TEST(Session, HasRankZerosSeedOnAllRanks) {
  run_sessions(
      3, [](Session& session) { EXPECT_EQ(session.seed(), 100U); },
      [](int rank) {
        SessionOptions options;
        options.seed = 100 + static_cast<std::uint64_t>(rank);
        return options;
      });
}

TEST(Session, TakesTheLaunchersSeed) {
  World world;
  world.seed = 18446744073709551615U;
  EXPECT_EQ(Session({.world = world}).seed(), 18446744073709551615U);
}

TEST(Session, CountsTheSamplesOfAllRanksInAStep) {
  run_sessions(4, [](Session& session) { EXPECT_EQ(session.effective_batch_size(7), 28); });
}

TEST(Session, ReducesMetrics) {
  run_sessions(3, [](Session& session) {
    const auto mine = at::full({2}, session.rank() + 1, at::kLong);
    EXPECT_TRUE(session.all_reduce(mine, ReduceOp::kSum).equal(at::full({2}, 6, at::kLong)));
    EXPECT_TRUE(mine.equal(at::full({2}, session.rank() + 1, at::kLong))) << "the rank's own value changed";
    EXPECT_EQ(session.all_reduce(static_cast<double>(session.rank())), 1.0);
    EXPECT_EQ(session.all_reduce(static_cast<double>(session.rank()), ReduceOp::kMax), 2.0);
    const auto graph = at::full({}, session.rank(), at::kFloat).set_requires_grad(true) * 1;
    EXPECT_EQ(session.all_reduce(graph).item<float>(), 1.0F);
  });
}

TEST(Session, BarrierWaitsForAll) {
  std::atomic<int> arrived = 0;
  run_sessions(4, [&](Session& session) {
    ++arrived;
    session.barrier();
    EXPECT_EQ(arrived, 4);
  });
}

TEST(Session, SaysOnRankZeroWhatItJoined) {
  testing::internal::CaptureStderr();
  run_sessions(
      2, [](Session&) {}, [](int) { return SessionOptions{.banner = true}; });
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "lrun: ddp over threads, 2 ranks on 1 node, device cpu, seed 0\n");
}

TEST(Session, IsSilentAloneAndWhenAskedTo) {
  testing::internal::CaptureStderr();
  Session alone({.world = World()});
  run_sessions(2, [](Session&) {});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Session, RefusesStrategiesThatDoNotFitItsProcesses) {
  const auto refusal = [](const std::string& strategy, int world_size, int local_world_size, std::size_t devices) {
    SessionOptions options;
    options.world.emplace();
    options.world->world_size = world_size;
    options.world->local_world_size = local_world_size;
    options.strategy = strategy;
    options.devices = std::vector<std::string>(devices, "cpu");
    try {
      const Session session(options);
      return std::string("accepted");
    } catch (const Unsupported& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(
      refusal("dp", 2, 1, 1),
      "strategy 'dp' is one process on one node, and there are 2 ranks: use 'ddp2' (dp inside every node) or 'ddp'");
  EXPECT_EQ(refusal("ddp2", 4, 2, 1),
            "strategy 'ddp2' is one process a node with all its devices, and this node has 2 ranks: start one (lrun "
            "--strategy ddp2 does), or use 'ddp'");
  EXPECT_EQ(refusal("ddp", 1, 1, 3),
            "strategy 'ddp' uses one device a process, and this one has 3: use 'dp' or 'ddp2'");
}

TEST(Session, OfDpSaysWhatABatchBecomes) {
  SessionOptions options = test::options_of({"dp", 3}, 0);
  options.banner = true;
  testing::internal::CaptureStderr();
  Session session(options);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "lrun: dp, 1 rank on 1 node, devices cpu, cpu, cpu, seed 0\n");
  EXPECT_EQ(session.devices().size(), 3U);
}

/// A loader batch of 7 on 8 devices, 1 and 10 nodes.
TEST(Session, CountsTheSamplesOfAStepAsTheSeedsDo) {
  const std::vector<std::tuple<Layout, std::int64_t>> cases = {
      {{"ddp", 8, 1}, 56}, {{"ddp", 8, 10}, 560},       {{"ddp2", 8, 1}, 7},          {{"ddp2", 8, 10}, 70},
      {{"dp", 8, 1}, 7},   {{"ddp_sharded", 8, 1}, 56}, {{"ddp_sharded", 8, 10}, 560}};
  for (const auto& [layout, samples] : cases) {
    run_layout(layout, [expected = samples](Session& session) {
      EXPECT_EQ(session.effective_batch_size(7), expected) << session.strategy();
    });
  }
}

}  // namespace
}  // namespace lrun::detail
