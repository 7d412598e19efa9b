// In: what a fork server has noted of the import that ended it. Out: its name, and a line of the list of 'auto'. Called
// by ForkServer and preload().
#include "run/unfinished_import.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/fd.h"
#include "base/whole_number.h"

namespace lrun::launcher {
namespace {

/// The text up to the next NUL, which is taken from `bytes`. Empty: there is no NUL.
std::optional<std::string_view> take_field(std::string_view& bytes) {
  const std::size_t end = bytes.find('\0');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view field = bytes.substr(0, end);
  bytes.remove_prefix(end + 1);
  return field;
}

}  // namespace

std::optional<UnfinishedImport> parse_unfinished_import(std::string_view bytes) {
  const auto nanoseconds = whole_number<std::int64_t>(take_field(bytes).value_or(""));
  const auto module = take_field(bytes);
  const auto list = take_field(bytes);
  if (!nanoseconds || !module || !list || module->empty()) return std::nullopt;
  return UnfinishedImport{std::string(*module), SteadyTime(std::chrono::nanoseconds(*nanoseconds)), std::string(*list)};
}

std::string leave_out(const UnfinishedImport& unfinished) {
  if (unfinished.list.empty()) return {};
  const Fd list(::open(unfinished.list.c_str(), O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status {};
  const bool is_own =
      list && ::fstat(list.get(), &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == ::geteuid();
  if (!is_own || write_all(list.get(), '!' + unfinished.module + '\n') != 0) return {};
  return "; the next run leaves '" + unfinished.module + "' out";
}

std::string why_late(const std::optional<UnfinishedImport>& unfinished, Duration limit, SteadyTime now) {
  constexpr Duration kLeast(60'000);
  std::string within = "not imported within " + format_duration(limit);
  if (!unfinished) return within;
  const bool hangs = now - unfinished->since > std::max(limit / 2, kLeast);
  return "'" + unfinished->module + "' is " + within + (hangs ? leave_out(*unfinished) : "");
}

}  // namespace lrun::launcher
