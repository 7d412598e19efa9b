// Takes the keys of the terminal for `lrun status --watch` and gives them back. Signals that end or stop the process
// give them back first.
#include "commands/watch_keys.h"

#include <fcntl.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <string_view>

namespace lrun::launcher {
namespace {

constexpr std::array kEndingSignals{SIGINT, SIGTERM, SIGHUP, SIGQUIT};

// A handler of signals has no other way to know them.
termios settings_before{};
volatile std::sig_atomic_t has_keys = 0;

bool is_ours() { return ::tcgetpgrp(STDIN_FILENO) == ::getpgrp(); }

void take_keys() {
  if (has_keys != 0 || !is_ours() || ::tcgetattr(STDIN_FILENO, &settings_before) != 0) return;
  termios settings = settings_before;
  settings.c_lflag &= ~static_cast<tcflag_t>(ECHO | ICANON);  // Ctrl-C and Ctrl-Z remain signals
  has_keys = 1;
  (void)::tcsetattr(STDIN_FILENO, TCSANOW, &settings);
}

void give_back_keys() {
  if (has_keys == 0) return;
  has_keys = 0;
  (void)::tcflush(STDIN_FILENO, TCIFLUSH);  // they are not for the shell
  (void)::tcsetattr(STDIN_FILENO, TCSANOW, &settings_before);
}

void end_by(int number) {
  give_back_keys();
  (void)std::signal(number, SIG_DFL);
  (void)::raise(number);
}

void stop_by(int /*number*/) {
  give_back_keys();
  (void)::raise(SIGSTOP);
}

void handle(int number, void (*handler)(int)) {
  struct sigaction action {};
  if (::sigaction(number, nullptr, &action) != 0 || action.sa_handler != SIG_DFL) return;  // nohup ignores SIGHUP
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  (void)::sigaction(number, &action, nullptr);
}

/// \return 'q', or Ctrl-D, is among the typed keys, or the terminal is gone
bool read_end() {
  std::array<char, 64> keys{};
  const ssize_t count = ::read(STDIN_FILENO, keys.data(), keys.size());
  if (count <= 0) return true;
  return std::string_view(keys.data(), static_cast<std::size_t>(count)).find_first_of("qQ\x04") !=
         std::string_view::npos;
}

}  // namespace

WatchKeys::WatchKeys() {
  if (::isatty(STDIN_FILENO) == 0) return;
  for (const int number : kEndingSignals) handle(number, end_by);
  handle(SIGTSTP, stop_by);
  take_keys();
}

WatchKeys::~WatchKeys() { give_back_keys(); }

bool WatchKeys::wait(Duration moment) {
  using Clock = std::chrono::steady_clock;
  take_keys();  // it may have come to the foreground
  const auto end = Clock::now() + moment;
  while (true) {
    const auto left = std::chrono::ceil<Duration>(end - Clock::now());
    if (left <= Duration::zero()) return true;
    std::array<pollfd, 2> files{{{.fd = STDOUT_FILENO, .events = 0, .revents = 0},
                                 {.fd = has_keys != 0 ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0}}};
    if (::poll(files.data(), files.size(), static_cast<int>(left.count())) <= 0) return true;
    if ((files[0].revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) return false;
    if (files[1].revents != 0 && read_end()) return false;
  }
}

}  // namespace lrun::launcher
