#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"

namespace lrun::detail {

/// The variable from which a program that launch() executes again learns its call and rank.
inline constexpr const char* kLaunchCallVariable = "LRUN_LAUNCH_CALL";

/// Which call of launch() a process was started for, and which of its ranks it is.
struct LaunchCall {
  int call = 0;  ///< 1, 2, 3, …
  int local_rank = 0;
  pid_t parent = 0;  ///< of the process: the variable of a process further down is not for it

  [[nodiscard]] std::string text() const;
  /// Empty when `text` is not of this form. Pure.
  static std::optional<LaunchCall> parse(std::string_view text);

  bool operator==(const LaunchCall&) const = default;
};

/// Facts that were noted when liblrun was loaded, before main().
struct ProcessStart {
  std::optional<LaunchCall> call;  ///< this process is a rank of launch(); empty: it is not
  Fd board;                        ///< of that launch
  std::vector<pid_t> threads;      ///< that ran already: an interpreter's own; ascending
};

ProcessStart& process_start();

/// The threads of this process, ascending.
std::vector<pid_t> threads_of_this_process();

}  // namespace lrun::detail
