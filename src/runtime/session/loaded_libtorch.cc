// Refuses another LibTorch than the one that this library was built with, when both are loaded. Classes change from
// version to version, and the loader names at most the first function that it does not find, or none.
#include "runtime/session/loaded_libtorch.h"

#include <torch/version.h>
#include <unistd.h>

/// LibTorch 2.9 and newer have it.
extern "C" [[gnu::weak]] std::uint64_t aoti_torch_abi_version();

namespace lrun::detail {
namespace {

constexpr std::uint64_t kBuiltWith = TORCH_ABI_VERSION;
constexpr int kVersionBits = 16;  // major and minor: a patch release keeps its interface
constexpr int kExitCode = 127;    // the loader's own, where it does not find a library or function

std::string version_of(std::uint64_t abi) {
  if (abi == 0) return "an older one";
  return std::to_string(abi >> 56) + '.' + std::to_string(abi >> 48 & 255) + '.' + std::to_string(abi >> 40 & 255);
}

/// Before all other initialisers of this library, which use LibTorch.
[[gnu::constructor(101)]] void check_loaded_libtorch() {
  const std::string text = wrong_libtorch_text(aoti_torch_abi_version == nullptr ? 0 : aoti_torch_abi_version());
  if (text.empty()) return;
  [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, text.data(), text.size());
  ::_exit(kExitCode);
}

}  // namespace

std::string wrong_libtorch_text(std::uint64_t loaded) {
  if (loaded >> (64 - kVersionBits) == kBuiltWith >> (64 - kVersionBits)) return {};
  return "lrun: error: liblrun was built with LibTorch " + version_of(kBuiltWith) + ", and this program has loaded " +
         version_of(loaded) +
         "\nlrun: hint: 'ldd PROGRAM' shows where it lies; often LD_LIBRARY_PATH leads there, or torch was upgraded\n";
}

}  // namespace lrun::detail
