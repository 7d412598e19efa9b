#pragma once

#include <sys/types.h>

namespace lrun::launcher {

/// The process of a rank.
struct RankProcess {
  int rank = 0;
  pid_t pid = 0;

  bool operator==(const RankProcess&) const = default;
};

}  // namespace lrun::launcher
