// A training that was saved on devices of one kind goes on on those of another.

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/devices/fake_device.h"
#include "runtime/support/checkpoint_moves.h"
#include "runtime/support/thread_ranks.h"
#include "support/temporary_folder.h"

namespace lrun::test {
namespace {

using moves::Reads;

/// Of rank 0; each rank is a thread and has a device of its own.
std::vector<at::Tensor> train_on(const std::string& kind, const std::string& strategy,
                                 const std::filesystem::path& folder, std::uint64_t last, Reads reads) {
  std::vector<at::Tensor> result;
  run_sessions(
      moves::kRanks,
      [&](Session& session) {
        auto own = moves::train(session, folder, last, reads);
        if (session.is_rank_zero()) result = std::move(own);
      },
      [&](int rank) {
        SessionOptions options{.banner = false};
        options.strategy = strategy;
        options.devices = {kind == "cpu" ? kind : kind + ":" + std::to_string(rank)};
        return options;
      });
  return result;
}

class DeviceCheckpoint : public testing::TestWithParam<std::tuple<std::string, std::string, std::string, Reads>> {};

TEST_P(DeviceCheckpoint, GoesOnOnDevicesOfAnyKind) {
  const auto& [strategy, from, to, reads] = GetParam();
  const TemporaryFolder folder;
  const moves::TrainOn of_strategy = [&strategy](const auto& kind, const auto& in, std::uint64_t last, Reads when) {
    return train_on(kind, strategy, in, last, when);
  };
  moves::expect_to_go_on(of_strategy, folder.path(), from, to, reads);
}

std::string name_of(const testing::TestParamInfo<DeviceCheckpoint::ParamType>& test_case) {
  const auto& [strategy, from, to, reads] = test_case.param;
  return strategy + "_from_" + from + "_to_" + to + (reads == Reads::kAfterWrap ? "_after_wrap" : "_before_wrap");
}

INSTANTIATE_TEST_SUITE_P(Kinds, DeviceCheckpoint,
                         testing::Combine(testing::Values("ddp", "ddp_sharded"), testing::Values("cpu", "hpu"),
                                          testing::Values("cpu", "hpu"),
                                          testing::Values(Reads::kBeforeWrap, Reads::kAfterWrap)),
                         name_of);

}  // namespace
}  // namespace lrun::test
