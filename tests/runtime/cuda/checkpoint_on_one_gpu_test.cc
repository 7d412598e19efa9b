// A training that was saved on a GPU goes on on CPUs, and the reverse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/collectives/registry.h"
#include "runtime/cuda/gpus.h"
#include "runtime/cuda/on_gpu.h"
#include "runtime/support/checkpoint_moves.h"
#include "support/temporary_folder.h"

namespace lrun::detail::testing {
namespace {

namespace moves = test::moves;
using moves::Reads;

/// One of two ranks, which share the GPU. They are processes: the threads of one would share the thread that LibTorch
/// has for the backward passes of a GPU, in which each waits for the other.
class RankOnOneGpu {
 public:
  RankOnOneGpu(int rank, std::string strategy) : rank_(rank), strategy_(std::move(strategy)) {}

  std::vector<at::Tensor> train(const std::string& kind, const std::filesystem::path& folder, std::uint64_t last,
                                Reads reads) {
    SessionOptions options = options_of_one(strategy_);
    options.devices = {kind == "cpu" ? kind : kind + ":0"};
    options.world->rank = options.world->local_rank = rank_;
    options.world->world_size = options.world->local_world_size = moves::kRanks;
    const std::string name = "moves of " + strategy_ + " " + std::to_string(++trainings_);
    options.connect = [&](const World&) { return make_collectives("gloo", group_of(rank_, moves::kRanks, name)); };
    Session session(std::move(options));
    return moves::train(session, folder, last, reads);
  }

 private:
  int rank_;
  std::string strategy_;
  int trainings_ = 0;
};

void expect_all_moves(int rank, const std::string& strategy, const std::filesystem::path& folder) {
  RankOnOneGpu here(rank, strategy);
  const moves::TrainOn train_on = [&](const auto& kind, const auto& in, std::uint64_t last, Reads reads) {
    return here.train(kind, in, last, reads);
  };
  for (const auto& [from, to] : {std::tuple("cuda", "cpu"), std::tuple("cpu", "cuda"), std::tuple("cuda", "cuda")}) {
    for (const Reads reads : {Reads::kBeforeWrap, Reads::kAfterWrap}) {
      const std::string name = std::string(from) + "_" + to + (reads == Reads::kAfterWrap ? "_after" : "_before");
      const ::testing::ScopedTrace trace(__FILE__, __LINE__, name);
      moves::expect_to_go_on(train_on, folder / name, from, to, reads);
    }
  }
}

class CheckpointOnOneGpu : public ::testing::TestWithParam<std::string> {};

TEST_P(CheckpointOnOneGpu, GoesOnOnTheOtherKindOfDevice) {
  if (gpus() < 1) GTEST_SKIP() << "no /dev/nvidia0";
  const test::TemporaryFolder folder;
  test_store();
  const auto errors = run_ranks_apart(moves::kRanks, [&](int rank) {
    load_cuda_side();  // LibTorch wants it before the first tensor of a CPU
    expect_all_moves(rank, GetParam(), folder.path());
    require(!::testing::Test::HasFailure(), "expectations failed: see above");
  });
  EXPECT_THAT(errors, ::testing::Each(std::string()));
}

INSTANTIATE_TEST_SUITE_P(Strategies, CheckpointOnOneGpu, ::testing::Values("ddp", "ddp_sharded"),
                         [](const auto& strategy) { return strategy.param; });

}  // namespace
}  // namespace lrun::detail::testing
