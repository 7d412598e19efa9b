#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/duration.h"

namespace lrun::launcher {

/// The answer of a launcher to a command.
struct ControlAnswer {
  enum class Kind {
    kAnswered,   ///< `text` is its line
    kNoRun,      ///< no launcher listens in that folder
    kElsewhere,  ///< one of another host does, with which this one shares the file system
    kSilent,     ///< it did not answer in time, or broke off
  };
  Kind kind = Kind::kNoRun;
  std::string text;

  bool operator==(const ControlAnswer&) const = default;
};

/// Asks the living launcher of this folder through its control socket and waits for the one line of its answer, at most
/// for `limit`. Blocks; not for the launcher itself.
ControlAnswer ask_run(const std::filesystem::path& folder, std::string_view command, Duration limit);

}  // namespace lrun::launcher
