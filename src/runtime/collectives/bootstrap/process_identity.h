#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace lrun::detail {

/// Identifies the process of a rank for the other ranks of its group.
struct ProcessIdentity {
  std::string host;             ///< The running kernel's boot id: equal in all containers of a host, nowhere else.
  std::uint64_t pid_space = 0;  ///< Inode of the pid namespace.
  pid_t pid = 0;                ///< In that namespace.

  bool operator==(const ProcessIdentity&) const = default;

  /// \throws std::system_error  the kernel does not tell its boot id.
  static ProcessIdentity of_this_process();
  /// \return  empty when `text` is not what text() writes.
  static std::optional<ProcessIdentity> parse(const std::string& text);
  [[nodiscard]] std::string text() const;  ///< Words with a space in between.

  /// The pid under which `observer` sees this process; 0 from another host or pid namespace.
  [[nodiscard]] pid_t pid_for(const ProcessIdentity& observer) const;
};

}  // namespace lrun::detail
