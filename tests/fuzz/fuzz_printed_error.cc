#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/split.h"
#include "verdict/explain.h"
#include "verdict/hint_table.h"
#include "verdict/judge.h"
#include "verdict/printed_error.h"

namespace {

/// Aborts, which libFuzzer reports with the input.
void demand(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

/// Input: how the worker ended, then the last lines that it printed.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::vector<std::string> lines = lrun::split_lines({reinterpret_cast<const char*>(data) + 1, size - 1});
  const lrun::PrintedError words = lrun::find_printed_error(lines);
  demand(words.lines.size() <= lrun::PrintedError::kMostLines);
  demand(words.error.find('\n') == std::string::npos && words.location.find('\n') == std::string::npos);
  lrun::FailureRecord record;
  record.ending = (data[0] & 1U) != 0 ? lrun::FailureRecord::Ending::kExited : lrun::FailureRecord::Ending::kSignaled;
  record.value = data[0] >> 1U;
  lrun::explain(record, {.last_lines = lines, .memory_kills = 1, .shared_memory_full = true});
  std::size_t bytes = 0;
  for (const std::string& line : record.evidence) bytes += line.size() + 1;
  demand(bytes <= lrun::FailureRecord::kMostEvidenceBytes);
  demand(record.error.size() <= lrun::FailureRecord::kMostErrorBytes);
  demand(record.location.size() <= lrun::FailureRecord::kMostErrorBytes);
  lrun::FailureRecord early;
  const lrun::Verdict verdict = lrun::judge({lrun::RunEnd::Kind::kWorkerFailed}, {early, record});
  if (verdict.culprit) demand(verdict.culprit->detail.size() <= lrun::FailureRecord::kMostErrorBytes);
  demand(record.success() == (record.cause == lrun::Cause::kSucceeded));
  (void)lrun::hint_for(record);
  (void)record.describe();
  return 0;
}
