#include "base/signal_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>

namespace lrun::inline core {

namespace {

// By number, from 1 on. The C library's own table, sigabbrev_np(), came with glibc 2.32 only.
constexpr std::array<std::string_view, 31> kAbbreviations = {
    "HUP",  "INT",  "QUIT", "ILL",    "TRAP",   "ABRT",  "BUS",  "FPE",  "KILL", "USR1", "SEGV",
    "USR2", "PIPE", "ALRM", "TERM",   "STKFLT", "CHLD",  "CONT", "STOP", "TSTP", "TTIN", "TTOU",
    "URG",  "XCPU", "XFSZ", "VTALRM", "PROF",   "WINCH", "POLL", "PWR",  "SYS"};
static_assert(kAbbreviations[SIGCHLD - 1] == "CHLD" && kAbbreviations[SIGSYS - 1] == "SYS");

}  // namespace

std::string signal_name(int signal_number) {
  if (signal_number < 1 || signal_number > static_cast<int>(kAbbreviations.size()))
    return fmt::format("signal {}", signal_number);
  return fmt::format("SIG{}", kAbbreviations[static_cast<std::size_t>(signal_number) - 1]);
}

std::optional<int> parse_signal(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) {
    return number > 0 && number < NSIG ? std::optional<int>(number) : std::nullopt;
  }
  if (text.starts_with("SIG")) text.remove_prefix(3);
  const auto* found = std::find(kAbbreviations.begin(), kAbbreviations.end(), text);
  if (found == kAbbreviations.end()) return std::nullopt;
  return static_cast<int>(found - kAbbreviations.begin()) + 1;
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
