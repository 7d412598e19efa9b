// A training that was saved on a GPU goes on on CPUs, and the reverse.
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "runtime/cuda/gpus.h"
#include "runtime/cuda/on_gpu.h"
#include "runtime/support/checkpoint_moves.h"

namespace lrun::detail::testing {
namespace {

namespace moves = test::moves;
using moves::Reads;

void expect_all_moves() {
  const Session session(options_of_one("ddp"));  // loads CUDA, which LibTorch wants before the first CPU's tensor
  for (const std::string strategy : {"ddp", "ddp_sharded"}) {
    for (const auto& [from, to] : {std::tuple("cuda", "cpu"), std::tuple("cpu", "cuda"), std::tuple("cuda", "cuda")}) {
      for (const Reads reads : {Reads::kBeforeWrap, Reads::kAfterWrap}) {
        const ::testing::ScopedTrace trace(__FILE__, __LINE__, strategy + " from " + from + " to " + to);
        moves::expect_to_go_on(strategy, from, to, reads);
      }
    }
  }
  require(!::testing::Test::HasFailure(), "expectations failed: see above");
}

TEST(CheckpointOnOneGpu, GoesOnOnTheOtherKindOfDevice) {
  if (gpus() < 1) GTEST_SKIP() << "no /dev/nvidia0";
  EXPECT_EQ(run_apart(expect_all_moves), "");
}

}  // namespace
}  // namespace lrun::detail::testing
