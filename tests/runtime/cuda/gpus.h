#pragma once

#include <filesystem>
#include <string>

namespace lrun::detail::testing {

/// Counted without CUDA, which does not survive a fork.
inline int gpus() {
  int count = 0;
  while (std::filesystem::exists("/dev/nvidia" + std::to_string(count))) ++count;
  return count;
}

}  // namespace lrun::detail::testing
