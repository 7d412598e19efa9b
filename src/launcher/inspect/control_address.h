#pragma once

#include <fmt/format.h>
#include <sys/un.h>

namespace lrun::launcher {

/// In the folder of a run.
inline constexpr const char* kControlName = "control.sock";

/// A socket's path holds 107 bytes, a folder's may be longer: the folder is named by its descriptor instead.
inline sockaddr_un control_address(int folder_fd) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  fmt::format("/proc/self/fd/{}/{}", folder_fd, kControlName).copy(address.sun_path, sizeof address.sun_path - 1);
  return address;
}

}  // namespace lrun::launcher
