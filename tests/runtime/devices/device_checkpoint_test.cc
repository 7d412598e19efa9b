// A training that was saved on devices of one kind goes on on those of another.

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <gtest/gtest.h>
#include <lrun/checkpoint.h>
#include <torch/serialize/input-archive.h>
#include <torch/serialize/output-archive.h>

#include <cstdint>
#include <filesystem>
#include <sstream>
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

std::uint64_t draw(at::Device device) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  return at::check_generator<at::CPUGeneratorImpl>(generator)->random64();
}

void seed(at::Device device, std::uint64_t number) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  generator.set_current_seed(number);
}

SessionOptions on_fake_device(int rank) {
  SessionOptions options{.banner = false};
  options.devices = {fake(rank).str()};
  return options;
}

TEST(RngStateOfDevices, IsThatOfEachRanksDevice) {
  run_sessions(
      kFakeDevices,
      [](Session& session) {
        seed(session.device(), session.rank_seed());
        torch::serialize::OutputArchive saved;
        save_rng_state(session, saved);
        const std::uint64_t expected = draw(session.device());
        std::stringstream bytes;
        saved.save_to(bytes);
        torch::serialize::InputArchive loaded;
        loaded.load_from(bytes, at::kCPU);
        EXPECT_TRUE(load_rng_state(session, loaded));
        EXPECT_EQ(draw(session.device()), expected) << session.rank();
      },
      on_fake_device);
}

TEST(RngStateOfDevices, IsNotThatOfAnotherKind) {
  std::string bytes;
  run_sessions(1, [&](Session& session) {
    torch::serialize::OutputArchive saved;
    save_rng_state(session, saved);
    std::ostringstream out;
    saved.save_to(out);
    bytes = out.str();
  });
  run_sessions(
      1,
      [&](Session& session) {
        torch::serialize::InputArchive loaded;
        std::istringstream in(bytes);
        loaded.load_from(in, at::kCPU);
        seed(session.device(), 4);
        EXPECT_FALSE(load_rng_state(session, loaded));
        const std::uint64_t drawn = draw(session.device());
        seed(session.device(), 4);
        EXPECT_EQ(drawn, draw(session.device()));
      },
      on_fake_device);
}

}  // namespace
}  // namespace lrun::test
