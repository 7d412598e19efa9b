#include "report/torchrun_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <string_view>

#include "base/signal_names.h"

namespace lrun {
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

std::string entry(const FailureRecord& record, std::size_t index) {
  const bool signaled = record.ending == FailureRecord::Ending::kSignaled;
  const int code = signaled ? -record.value : record.value;
  const std::string traceback =
      signaled ? fmt::format("Signal {} ({}) received by PID {}", record.value, signal_name(record.value), record.pid)
               : std::string(kTracebackHint);
  return fmt::format(
      "[{}]:\n"
      "  time      : {}\n"
      "  host      : {}\n"
      "  rank      : {} (local_rank: {})\n"
      "  exitcode  : {} (pid: {})\n"
      "  error_file: <N/A>\n"
      "  traceback : {}\n",
      index, local_time(record.wall_ns), record.node, record.rank, record.local_rank, code, record.pid, traceback);
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
                             const std::string& program) {
  if (!verdict.culprit) return {};
  std::string others;
  std::size_t index = 0;
  for (const FailureRecord& record : records) {
    if (record.success() || record == *verdict.culprit) continue;
    others += entry(record, ++index);
  }
  if (others.empty()) others = "  <NO_OTHER_FAILURES>\n";
  const std::string root = entry(*verdict.culprit, 0);
  const std::size_t width = std::min(kWidestBorder, std::max(longest_line(others), longest_line(root)));
  const std::string thick(width, '=');
  const std::string thin(width, '-');
  return fmt::format("\n{}\n{} FAILED\n{}\nFailures:\n{}{}\nRoot Cause (first observed failure):\n{}{}\n", thick,
                     program, thin, others, thin, root, thick);
}

}  // namespace lrun
