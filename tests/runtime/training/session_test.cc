#include "lrun/session.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <lrun/error.h>

#include <atomic>
#include <cmath>
#include <stdexcept>
#include <string>

#include "runtime/training/ranks.h"

namespace lrun {
namespace {

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

TEST(Session, RefusesWhatComesLaterBeforeItJoins) {
  bool joined = false;
  SessionOptions options;
  options.world = World();
  options.connect = [&](const World&) -> std::unique_ptr<Collectives> { throw std::logic_error("joined"); };
  options.strategy = "ddp2";
  EXPECT_EQ(refusal(options), "strategy 'ddp2' is not in this version of liblrun: it has 'ddp' and 'ddp_sharded'");
  options.strategy = std::nullopt;
  options.world->strategy = "dp";
  EXPECT_EQ(refusal(options), "strategy 'dp' is not in this version of liblrun: it has 'ddp' and 'ddp_sharded'");
  options.world->strategy = "";
  options.world->devices = {"cuda:0"};
  EXPECT_EQ(refusal(options),
            "device 'cuda:0' is not in this version of liblrun: it trains on the CPU (lrun --accelerator cpu)");
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

}  // namespace
}  // namespace lrun
