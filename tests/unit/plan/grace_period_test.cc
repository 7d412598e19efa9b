#include "plan/grace_period.h"

#include <gtest/gtest.h>

#include "planning.h"

namespace lrun::launcher {
namespace {

const Environment kWithVariable = environment_with({{"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "7"}});

TEST(GracePeriod, IsHalfAMinuteWhereNothingIsSaid) {
  EXPECT_EQ(choose_grace_period({}, environment_with({})).value, Duration(30'000));
  EXPECT_EQ(choose_grace_period({}, environment_with({{"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", ""}})).value,
            Duration(30'000));
}

TEST(GracePeriod, IsThatOfTorchrunsVariableUnlessAnOptionIsGiven) {
  const Setting<Duration> from_variable = choose_grace_period({}, kWithVariable);
  EXPECT_EQ(from_variable.value, Duration(7000));
  EXPECT_EQ(from_variable.origin, "TORCH_ELASTIC_SHUTDOWN_TIMEOUT");
  LaunchRequest request;
  request.grace = {Duration(2000), Source::kFlag, "--grace"};
  EXPECT_EQ(choose_grace_period(request, kWithVariable).value, Duration(2000));
}

TEST(GracePeriod, IsRefusedWhereTheVariableHoldsNoTime) {
  EXPECT_THROW(choose_grace_period({}, environment_with({{"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "soon"}})), UserError);
}

}  // namespace
}  // namespace lrun::launcher
