#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lrun::launcher {

/// One message of a fork server: a letter, then a text.
struct ForkServerAnswer {
  enum class Kind : char {
    kHello = 'H',  ///< the Python runs lrun's file, and asks what to do
    kReady = 'R',  ///< the modules are imported: `text` is a note for the user, or empty
    kUnfit = 'U',  ///< no rank can be forked: `text` says why
    kForked = 'P'  ///< ranks: `pids`
  };
  Kind kind = Kind::kUnfit;
  std::vector<pid_t> pids{};  ///< in the order of the requests
  std::string text{};         ///< as it came

  bool operator==(const ForkServerAnswer&) const = default;
};

inline constexpr std::size_t kMostAnswerBytes = 512;

/// Empty for anything else.
std::optional<ForkServerAnswer> parse_fork_server_answer(std::string_view bytes);

}  // namespace lrun::launcher
