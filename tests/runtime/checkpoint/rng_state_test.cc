// A training that goes on draws the random numbers that it would have drawn without the stop. Ranks are processes,
// because threads share LibTorch's generator.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <lrun/checkpoint.h>
#include <lrun/exchange.h>
#include <lrun/session.h>
#include <torch/serialize/input-archive.h>
#include <torch/serialize/output-archive.h>
#include <torch/utils.h>

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/support/backend_ranks.h"
#include "runtime/support/recording_collectives.h"

namespace lrun::detail {
namespace {

using testing::require;
using testing::require_equal;

std::unique_ptr<Session> session_in(Collectives& group) {
  SessionOptions options{.banner = false};
  options.world.emplace();
  options.world->rank = options.world->local_rank = group.rank();
  options.world->world_size = options.world->local_world_size = group.world_size();
  options.devices = {"cpu"};
  options.connect = [&](const World&) {
    return std::make_unique<test::RecordingCollectives>(group, [](const std::string&, const at::Tensor&) {});
  };
  return std::make_unique<Session>(std::move(options));
}

std::string saved_state(Session& session) {
  torch::serialize::OutputArchive archive;
  save_rng_state(session, archive);
  std::ostringstream bytes;
  archive.save_to(bytes);
  return bytes.str();
}

bool load_state(Session& session, const std::string& saved) {
  std::istringstream bytes(saved);
  torch::serialize::InputArchive archive;
  archive.load_from(bytes);
  return load_rng_state(session, archive);
}

TEST(RngState, GivesEveryRankItsOwnGenerator) {
  for (const int ranks : {1, 2, 3}) {
    const auto errors = testing::run_ranks(ranks == 1 ? "single" : "shm", ranks, [](Collectives& group) {
      const auto session = session_in(group);
      torch::manual_seed(session->rank_seed());
      at::rand({7});
      const std::string saved = saved_state(*session);
      const at::Tensor expected = at::randn({7});
      const auto of_ranks = all_gather(group, expected);
      require(of_ranks.size() == 1 || !of_ranks[0].equal(of_ranks[1]), "ranks draw the same numbers");
      torch::manual_seed(5);
      require(load_state(*session, saved), "the states were not loaded");
      require_equal(at::randn({7}), expected, "the numbers behind the checkpoint");
    });
    EXPECT_EQ(errors, std::vector<std::string>(errors.size())) << ranks;
  }
}

TEST(RngState, LeavesTheGeneratorsOfAnotherNumberOfRanks) {
  std::string saved;
  testing::run_ranks("single", 1, [&](Collectives& group) { saved = saved_state(*session_in(group)); });
  const auto errors = testing::run_ranks("shm", 2, [&](Collectives& group) {
    const auto session = session_in(group);
    torch::manual_seed(3);
    const at::Tensor expected = at::rand({7});
    torch::manual_seed(3);
    require(!load_state(*session, saved), "states of one rank were loaded by two");
    require_equal(at::rand({7}), expected, "the generator");
  });
  EXPECT_EQ(errors, std::vector<std::string>(errors.size()));
}

TEST(RngState, IsNotInEveryArchive) {
  testing::run_ranks("single", 1, [&](Collectives& group) {
    torch::serialize::OutputArchive archive;
    archive.write("other", at::ones({1}));
    std::ostringstream bytes;
    archive.save_to(bytes);
    EXPECT_FALSE(load_state(*session_in(group), bytes.str()));
  });
}

}  // namespace
}  // namespace lrun::detail
