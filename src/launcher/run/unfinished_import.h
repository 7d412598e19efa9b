#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/duration.h"

namespace lrun::launcher {

/// A module that a fork server is importing. The server notes it in memory that it shares with the launcher, which
/// reads it once the server has ended or has no time left.
struct UnfinishedImport {
  std::string module;
  SteadyTime since;
  std::string list;  ///< the file of 'auto' that has the module; empty: the user named it

  bool operator==(const UnfinishedImport&) const = default;
};

inline constexpr std::size_t kMostImportBytes = 8192;

/// 'NANOSECONDS<NUL>MODULE<NUL>LIST<NUL>', and anything behind it. Empty where nothing is imported.
std::optional<UnfinishedImport> parse_unfinished_import(std::string_view bytes);

/// Adds to the list that the next run leaves the module out. \return '; the next run leaves 'MODULE' out'; empty where
/// the user named the module or the list cannot be written.
std::string leave_out(const UnfinishedImport& unfinished);

/// Why there is no server when `limit` is over. A module that has taken more than half of it, and more than a minute,
/// is left out from now on: it hangs. Another one may have been slow by chance.
std::string why_late(const std::optional<UnfinishedImport>& unfinished, Duration limit, SteadyTime now);

}  // namespace lrun::launcher
