#include "verdict/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <string_view>

#include "base/duration.h"
#include "base/split.h"
#include "process/exit_codes.h"
#include "verdict/has_any.h"
#include "verdict/last_words.h"
#include "verdict/plain_error.h"

namespace lrun::inline core {
namespace {

using Ending = FailureRecord::Ending;

/// What is said of a collective operation that never ended. A watchdog that ends for another reason, such as a CUDA
/// error, is no victim.
constexpr std::array kTimeoutWords{
    std::string_view("Watchdog caught collective operation timeout"),
    std::string_view("ProcessGroupNCCL watchdog hang"),
    std::string_view("ProcessGroupNCCL's watchdog got stuck"),
    std::string_view("ms for recv operation to complete"),  // gloo
    std::string_view("ms for send operation to complete"),
    std::string_view("DistStoreError: wait timeout after "),
    std::string_view(" seconds waiting for clients. "),
    std::string_view("failed to pass monitoredBarrier in "),
    std::string_view("No ranks successfully processed in monitoredBarrier"),
    std::string_view("lrun::CollectiveTimeout"),
};

/// What libraries say when the process at the other end of a connection is gone.
constexpr std::array kPeerWords{
    std::string_view("lrun::PeerLost"),
    std::string_view("Connection closed by peer"),
    std::string_view("connection closed by peer"),
    std::string_view("Connection reset by peer"),
    std::string_view("remote process exited"),
    std::string_view("remote process exiting"),
    std::string_view("ncclRemoteError"),
    std::string_view("failed to recv, got 0 bytes"),
    std::string_view(") ended during "),  // liblrun's own, where a program prints what() alone
    std::string_view(") left the group before "),
    std::string_view(" ended while the group was made"),
    std::string_view("a rank ended while it reported the failure of the group"),
};

/// Its own error says so, or, without one, one of the very last lines: a warning further up may long be overcome.
bool ended_with(const FailureRecord& record, const auto& all_words) {
  if (!record.error.empty()) return has_any(record.error, all_words);
  constexpr std::ptrdiff_t kNearTheEnd = 3;
  const auto count = static_cast<std::ptrdiff_t>(record.evidence.size());
  return std::any_of(record.evidence.end() - std::min(kNearTheEnd, count), record.evidence.end(),
                     [&](const std::string& line) { return has_any(line, all_words); });
}

/// A watchdog says so and aborts; call stacks of many lines, and another thread's error, may follow.
bool gave_up_waiting(const FailureRecord& record, const EndFacts& facts) {
  if (ended_with(record, kTimeoutWords)) return true;
  return record.ended_by(SIGABRT) && std::any_of(facts.last_lines.begin(), facts.last_lines.end(),
                                                 [](const std::string& line) { return has_any(line, kTimeoutWords); });
}

Cause classify(const FailureRecord& record, const EndFacts& facts) {
  if (record.ending == Ending::kExecFailed) return Cause::kExecFailed;
  if (record.ending == Ending::kLost) return Cause::kLost;
  if (record.success()) return Cause::kSucceeded;
  if (record.stopped_by_lrun()) return Cause::kStoppedByLrun;
  const bool kernel_may_have = record.ended_by(SIGXCPU) || record.ended_by(SIGKILL);
  const bool for_memory = record.ended_by(SIGKILL) && facts.memory_kills > 0 && facts.memory_kills_are_ours;
  if (kernel_may_have && facts.cpu_limit_seconds > 0 && !for_memory) return Cause::kCpuTimeLimit;
  if (record.ended_by(SIGKILL) && facts.memory_kills > 0) {
    return facts.memory_kills_are_ours ? Cause::kOutOfMemory : Cause::kProbablyOutOfMemory;
  }
  if (record.ended_by(SIGBUS) && facts.shared_memory_full) return Cause::kSharedMemoryFull;
  if (gave_up_waiting(record, facts)) return Cause::kWatchdogAbort;
  if (ended_with(record, kPeerWords)) return Cause::kPeerLost;
  return record.ending == Ending::kSignaled ? Cause::kFatalSignal : Cause::kOwnError;
}

/// What the worker left in its file is its own account, written before anything else could fail.
LastWords words_of(const FailureRecord& record, const EndFacts& facts) {
  if (!facts.error_file) {
    // An uncaught exception comes on stderr, and what was left in stdout's buffer comes after it. But an interpreter
    // that ends of one exits with 1: with another code the program has chosen, and may have said why on stdout.
    const bool chose_its_code = record.ending == Ending::kExited && record.value != 1 && record.value < kExitSignalBase;
    const bool may_be_an_exception =
        record.ending == Ending::kExited || record.ended_by(SIGABRT) || record.ended_by(SIGINT);
    if (!chose_its_code) {
      LastWords words = find_last_words(facts.error_lines, may_be_an_exception);
      if (!words.error.empty()) return words;
    }
    return find_last_words(facts.last_lines, may_be_an_exception);
  }
  LastWords words = find_last_words(split_lines(facts.error_file->call_stack));
  const std::vector<std::string> message = split_lines(facts.error_file->message);
  if (!message.empty()) words.error = message.front();
  if (words.lines.empty()) words.lines = message;
  return words;
}

constexpr int kMinusOne = 255;

/// What programs exit with that have said why: Python's sys.exit('text'), Go's log.Fatal, Perl's die.
bool is_code_of_words(int code) { return code == 1 || code == kMinusOne; }

/// By exit() and not as a shell that tells of a signal.
bool chose_to_end(const FailureRecord& record) {
  // 128 itself is git's code.
  return record.ending == Ending::kExited && (record.value <= kExitSignalBase || record.value == kMinusOne);
}

std::string detail_of(Cause cause, const EndFacts& facts) {
  switch (cause) {
    case Cause::kFatalSignal:
      return facts.passed_on ? "sent to lrun and passed on; the program has no handler for it" : std::string();
    case Cause::kOutOfMemory:
      return facts.memory_limit_bytes == 0 ? std::string() : "memory limit " + bytes_in_words(facts.memory_limit_bytes);
    case Cause::kCpuTimeLimit:
      return format_duration(Duration(std::chrono::seconds(facts.cpu_limit_seconds)));
    case Cause::kSharedMemoryFull:
      return bytes_in_words(facts.shared_memory_bytes);
    case Cause::kOwnError:
      return facts.full_folder.empty() ? std::string()
                                       : "no space is left in '" + facts.full_folder + "' for its output";
    default:
      return {};
  }
}

}  // namespace

std::string bytes_in_words(std::uint64_t bytes) {
  constexpr std::array kUnits{"bytes", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  std::string number = fmt::format("{:.1f}", value);
  if (number.ends_with(".0")) number.resize(number.size() - 2);
  return fmt::format("{} {}", number, kUnits[unit]);
}

void explain(FailureRecord& record, const EndFacts& facts) {
  if (!record.success()) {
    LastWords words = words_of(record, facts);
    record.error = words.error.substr(0, FailureRecord::kMostErrorBytes);
    record.location = words.location.substr(0, FailureRecord::kMostErrorBytes);
    record.evidence = bounded_evidence(std::move(words.lines));
    if (facts.error_file) {
      record.error_file = facts.error_file_path;
      record.error_time = facts.error_file->time;
    }
  }
  record.cause = classify(record, facts);
  record.detail = detail_of(record.cause, facts);
  // Only now: who is a victim is told by what several lines say.
  if (record.error.empty() && record.cause == Cause::kOwnError && chose_to_end(record)) {
    const std::string said = find_plain_error(facts.last_lines, facts.error_lines, is_code_of_words(record.value));
    record.error = said.substr(0, FailureRecord::kMostErrorBytes);
  }
}

}  // namespace lrun::inline core
