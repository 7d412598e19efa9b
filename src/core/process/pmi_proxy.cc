#include "process/pmi_proxy.h"

#include <sys/socket.h>

#include "base/whole_number.h"

namespace lrun::inline core {

std::optional<pid_t> pmi_proxy(std::string_view descriptor) {
  const auto fd = natural_number(descriptor);
  if (!fd) return std::nullopt;
  ucred creator{};
  socklen_t size = sizeof creator;
  if (::getsockopt(*fd, SOL_SOCKET, SO_PEERCRED, &creator, &size) != 0 || creator.pid <= 0) return std::nullopt;
  return creator.pid;
}

}  // namespace lrun::inline core
