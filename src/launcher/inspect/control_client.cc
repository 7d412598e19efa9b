#include "inspect/control_client.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "base/clock.h"
#include "base/fd.h"
#include "inspect/control_address.h"

namespace lrun::launcher {
namespace {

using Kind = ControlAnswer::Kind;

constexpr std::size_t kMostAnswerBytes = std::size_t{16} * 1024 * 1024;
constexpr Duration kFullQueue(5);  // of a launcher that has many clients at once

class Deadline {
 public:
  explicit Deadline(Duration limit) : end_(std::chrono::steady_clock::now() + limit) {}

  [[nodiscard]] int milliseconds_left() const {
    const auto left = std::chrono::ceil<Duration>(end_ - std::chrono::steady_clock::now());
    return static_cast<int>(std::max<Duration::rep>(0, left.count()));
  }
  [[nodiscard]] bool passed() const { return milliseconds_left() == 0; }

  /// False when nothing happened in time.
  [[nodiscard]] bool wait_for(int fd, short events) const {
    pollfd polled{fd, events, 0};
    int ready = -1;
    do {
      ready = ::poll(&polled, 1, milliseconds_left());
    } while (ready < 0 && errno == EINTR);
    return ready > 0;
  }

 private:
  SteadyTime end_;
};

Kind connect_to(const std::filesystem::path& folder, int socket, const Deadline& deadline) {
  const Fd directory(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return Kind::kNoRun;
  const sockaddr_un address = control_address(directory.get());
  while (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (errno == ECONNREFUSED) return Kind::kElsewhere;  // a launcher removes its socket before it ends
    if (errno != EAGAIN && errno != EINTR) return Kind::kNoRun;
    if (deadline.passed()) return Kind::kSilent;
    const timespec pause{0, kFullQueue.count() * 1'000'000};
    ::nanosleep(&pause, nullptr);  // a full queue of a Unix socket is no event
  }
  return Kind::kAnswered;
}

bool send_all(int socket, std::string_view text, const Deadline& deadline) {
  while (!text.empty()) {
    const ssize_t sent = ::send(socket, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      text.remove_prefix(static_cast<std::size_t>(sent));
    } else if ((errno != EAGAIN && errno != EINTR) || !deadline.wait_for(socket, POLLOUT)) {
      return false;
    }
  }
  return true;
}

}  // namespace

ControlAnswer ask_run(const std::filesystem::path& folder, std::string_view command, Duration limit) {
  const Deadline deadline(limit);
  const Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return {};
  if (const Kind reached = connect_to(folder, socket.get(), deadline); reached != Kind::kAnswered) return {reached, {}};
  if (!send_all(socket.get(), std::string(command) + "\n", deadline)) return {Kind::kSilent, {}};
  std::string text;
  while (text.size() <= kMostAnswerBytes) {
    char buffer[65536];
    const ssize_t count = ::recv(socket.get(), buffer, sizeof buffer, 0);
    if (count > 0) {
      text.append(buffer, static_cast<std::size_t>(count));
      if (text.back() == '\n') return {Kind::kAnswered, text.substr(0, text.size() - 1)};
    } else if (count == 0 || (errno != EAGAIN && errno != EINTR) || !deadline.wait_for(socket.get(), POLLIN)) {
      break;
    }
  }
  return {Kind::kSilent, {}};
}

}  // namespace lrun::launcher
