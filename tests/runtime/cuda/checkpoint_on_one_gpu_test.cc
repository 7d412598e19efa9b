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

TEST(CheckpointOnOneGpu, GoesOnOnTheOtherKindOfDevice) {
  if (gpus() < 1) GTEST_SKIP() << "no /dev/nvidia0";
  load_cuda_side();
  for (const std::string strategy : {"ddp", "ddp_sharded"}) {
    for (const auto& [from, to] : {std::tuple("cuda", "cpu"), std::tuple("cpu", "cuda"), std::tuple("cuda", "cuda")}) {
      for (const Reads reads : {Reads::kBeforeWrap, Reads::kAfterWrap}) {
        const ::testing::ScopedTrace trace(__FILE__, __LINE__, strategy + " from " + from + " to " + to);
        moves::expect_to_go_on(strategy, from, to, reads);
      }
    }
  }
}

}  // namespace
}  // namespace lrun::detail::testing
