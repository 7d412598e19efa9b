#include <gtest/gtest.h>
#include <lrun/version.h>
#include <torch/version.h>

#include <cstdint>
#include <string>

#include "lrun_version.h"
#include "runtime/session/loaded_libtorch.h"

namespace lrun::detail {
namespace {

TEST(Version, IsTheOneOfTheProject) { EXPECT_STREQ(version(), LRUN_VERSION); }

TEST(Version, OfLibTorchIsTheOneThatWasBuiltWith) {
  EXPECT_EQ(wrong_libtorch_text(TORCH_ABI_VERSION), "");
  const std::string built =
      "lrun: error: liblrun was built with LibTorch " TORCH_VERSION ", and this program has loaded ";
  constexpr std::uint64_t kOther = 9ULL << 56 | 15ULL << 48 | 3ULL << 40;
  EXPECT_TRUE(wrong_libtorch_text(kOther).starts_with(built + "9.15.3\n")) << wrong_libtorch_text(kOther);
  EXPECT_TRUE(wrong_libtorch_text(0).starts_with(built + "an older one\n")) << wrong_libtorch_text(0);
}

}  // namespace
}  // namespace lrun::detail
