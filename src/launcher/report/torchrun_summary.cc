#include "report/torchrun_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <string_view>

#include "base/signal_names.h"
#include "logs/terminal_text.h"

namespace lrun::launcher {
namespace {

constexpr std::size_t kWidestBorder = 60;
constexpr std::string_view kTracebackHint =
    "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html";

std::string local_time(std::int64_t wall_ns) {
  const std::time_t seconds = wall_ns / 1'000'000'000;
  std::tm parts{};
  ::localtime_r(&seconds, &parts);
  char text[32];
  const std::size_t length = std::strftime(text, sizeof text, "%Y-%m-%d_%H:%M:%S", &parts);
  return {text, length};
}

using AccountOf = std::function<std::string(const FailureRecord&)>;

/// Safe for a terminal, and indented below the first line as torchrun does.
std::string indented(std::string_view account) {
  std::string text;
  while (!account.empty()) {
    const std::size_t end = std::min(account.find('\n'), account.size());
    if (!text.empty()) text += "\n  ";
    text += terminal_safe(account.substr(0, end));
    account.remove_prefix(std::min(end + 1, account.size()));
  }
  return text;
}

std::string traceback_of(const FailureRecord& record, const AccountOf& account_of) {
  if (!record.error_file.empty()) return indented(account_of(record));
  if (record.ending != FailureRecord::Ending::kSignaled) return std::string(kTracebackHint);
  return fmt::format("Signal {} ({}) received by PID {}", record.value, signal_name(record.value), record.pid);
}

std::string entry(const FailureRecord& record, std::size_t index, const AccountOf& account_of) {
  const bool signaled = record.ending == FailureRecord::Ending::kSignaled;
  const int code = signaled ? -record.value : record.value;
  return fmt::format(
      "[{}]:\n"
      "  time      : {}\n"
      "  host      : {}\n"
      "  rank      : {} (local_rank: {})\n"
      "  exitcode  : {} (pid: {})\n"
      "  error_file: {}\n"
      "  traceback : {}\n",
      index, local_time(record.wall_ns), record.node, record.rank, record.local_rank, code, record.pid,
      record.error_file.empty() ? "<N/A>" : record.error_file, traceback_of(record, account_of));
}

std::size_t longest_line(const std::string& text) {
  std::size_t longest = 0;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    longest = std::max(longest, end - begin);
    begin = end + 1;
  }
  return longest;
}

}  // namespace

std::string torchrun_summary(const Verdict& verdict, const std::vector<FailureRecord>& records,
                             const std::string& program, const AccountOf& account_of) {
  const FailureRecord* const failure = verdict.failure();
  if (failure == nullptr) return {};
  std::string others;
  std::size_t index = 0;
  for (const FailureRecord& record : records) {
    if (record.success() || record == *failure) continue;
    others += entry(record, ++index, account_of);
  }
  if (others.empty()) others = "  <NO_OTHER_FAILURES>\n";
  const std::string root = entry(*failure, 0, account_of);
  const std::size_t width = std::min(kWidestBorder, std::max(longest_line(others), longest_line(root)));
  const std::string thick(width, '=');
  const std::string thin(width, '-');
  return fmt::format("\n{}\n{} FAILED\n{}\nFailures:\n{}{}\nRoot Cause (first observed failure):\n{}{}\n", thick,
                     program, thin, others, thin, root, thick);
}

}  // namespace lrun::launcher
