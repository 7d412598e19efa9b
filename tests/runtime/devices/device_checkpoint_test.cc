// A training that was saved on devices of one kind goes on on those of another.

#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "runtime/devices/fake_device.h"
#include "runtime/support/checkpoint_moves.h"

namespace lrun::test {
namespace {

using moves::Reads;

class DeviceCheckpoint : public testing::TestWithParam<std::tuple<std::string, std::string, std::string, Reads>> {};

TEST_P(DeviceCheckpoint, GoesOnOnDevicesOfAnyKind) {
  const auto& [strategy, from, to, reads] = GetParam();
  moves::expect_to_go_on(strategy, from, to, reads);
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
