#include "base/console_descriptor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace lrun::inline core {

namespace {

bool writable_now(int fd) {
  pollfd entry{fd, POLLOUT, 0};
  return ::poll(&entry, 1, 0) == 1;
}

/// The bytes that a pipe or terminal takes without blocking when poll() calls it writable: a page, or the buffer of a
/// terminal's driver.
constexpr std::size_t kPipeStep = 4096;
constexpr std::size_t kTerminalStep = 256;

}  // namespace

ConsoleDescriptor::ConsoleDescriptor(int fd) : fd_(fd) {
  struct ::stat status {};
  if (::fstat(fd, &status) != 0) return;
  mode_ = status.st_mode;
  device_ = status.st_dev;
  inode_ = status.st_ino;
  terminal_ = S_ISCHR(mode_) && ::isatty(fd) == 1;
}

ConsoleDescriptor::Way ConsoleDescriptor::open_way() {
  if (S_ISSOCK(mode_)) return Way::kSocket;
  if (!S_ISFIFO(mode_) && !S_ISCHR(mode_)) return Way::kDirect;
  int number = 0;
  if (terminal_ && ::ioctl(fd_, TIOCGPTN, &number) == 0) return Way::kAsk;  // opening a master makes another terminal
  const std::string path = fmt::format("/proc/self/fd/{}", fd_);
  own_ = Fd(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  return own_ ? Way::kOwn : Way::kAsk;
}

long ConsoleDescriptor::write_some(std::string_view bytes) {
  if (way_ == Way::kNotOpened) way_ = open_way();
  ssize_t count = -1;
  do {
    switch (way_) {
      case Way::kOwn:
        count = ::write(own_.get(), bytes.data(), bytes.size());
        break;
      case Way::kSocket:
        count = ::send(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        break;
      case Way::kAsk:
        if (!writable_now(fd_)) return -EAGAIN;
        count = ::write(fd_, bytes.data(), std::min(bytes.size(), terminal_ ? kTerminalStep : kPipeStep));
        break;
      case Way::kDirect:
      case Way::kNotOpened:
        count = ::write(fd_, bytes.data(), bytes.size());
        break;
    }
  } while (count < 0 && errno == EINTR);
  return count < 0 ? -errno : count;
}

ConsoleDescriptor::Size ConsoleDescriptor::size() const {
  winsize size{};
  if (::ioctl(fd_, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {size.ws_col, size.ws_row};
}

bool ConsoleDescriptor::means_closed(int error) const {
  return error == EPIPE || error == EBADF || error == ECONNRESET || error == ENOTCONN || (error == EIO && terminal_);
}

bool ConsoleDescriptor::same_as(const ConsoleDescriptor& other) const {
  return mode_ != 0 && device_ == other.device_ && inode_ == other.inode_;
}

}  // namespace lrun::inline core
