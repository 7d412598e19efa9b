#include "base/signal_names.h"

#include <fmt/format.h>

#include <charconv>
#include <csignal>
#include <cstring>

namespace lrun::inline core {

std::string signal_name(int signal_number) {
  const char* abbreviation = ::sigabbrev_np(signal_number);
  if (abbreviation == nullptr) return fmt::format("signal {}", signal_number);
  return fmt::format("SIG{}", abbreviation);
}

std::optional<int> parse_signal(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) {
    return number > 0 && number < NSIG ? std::optional<int>(number) : std::nullopt;
  }
  if (text.starts_with("SIG")) text.remove_prefix(3);
  for (int candidate = 1; candidate < NSIG; ++candidate) {
    const char* abbreviation = ::sigabbrev_np(candidate);
    if (abbreviation != nullptr && text == abbreviation) return candidate;
  }
  return std::nullopt;
}

std::string_view signal_meaning(int signal_number) {
  switch (signal_number) {
    case SIGSEGV:
      return "invalid memory access";
    case SIGBUS:
      return "bus error";
    case SIGFPE:
      return "arithmetic error";
    case SIGILL:
      return "illegal instruction";
    case SIGABRT:
      return "abort";
    case SIGKILL:
      return "killed from outside";
    case SIGPIPE:
      return "write to a closed pipe";
    case SIGTERM:
      return "asked to end from outside";
    case SIGHUP:
      return "hang-up";
    case SIGINT:
      return "interrupt";
    case SIGALRM:
      return "its own timer";
    case SIGTRAP:
      return "trap";
    case SIGXCPU:
      return "CPU time limit";
    case SIGXFSZ:
      return "file size limit";
    case SIGSYS:
      return "forbidden system call";
    default:
      return {};
  }
}

}  // namespace lrun::inline core
