#pragma once

#include <lrun/error.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "verdict/failure_record.h"
#include "verdict/judge.h"

namespace lrun::detail {

/// The outcome of a launch, as its supervisor reports it.
struct LaunchEnd {
  /// A rank that ended with code 0 too early.
  struct Unfinished {
    int rank = 0;
    bool reached = false;  ///< the function was running: it called exit()

    bool operator==(const Unfinished&) const = default;
  };

  RunEnd end;
  std::vector<FailureRecord> records;  ///< one for each rank that ended, in the order of their deaths
  std::optional<Unfinished> unfinished;

  [[nodiscard]] bool success() const { return end.kind == RunEnd::Kind::kSucceeded && !unfinished; }

  /// Some lines of text.
  [[nodiscard]] std::string text() const;
  /// Empty when `text` is incomplete because its writer was killed.
  static std::optional<LaunchEnd> parse(std::string_view text);

  bool operator==(const LaunchEnd&) const = default;
};

/// The exception for a launch that was no success. Pure.
WorkersFailed failure_of(const LaunchEnd& end);

}  // namespace lrun::detail
