// In: how a worker ended, its last lines, its error file and facts about the machine. Out: the cause and the error in
// its FailureRecord. The launcher calls explain() once for each worker that ended.
#include "verdict/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <string_view>

#include "base/bytes_text.h"
#include "base/duration.h"
#include "base/split.h"
#include "process/exit_codes.h"
#include "verdict/has_any.h"
#include "verdict/plain_error.h"
#include "verdict/printed_error.h"

namespace lrun::inline core {
namespace {

using Ending = FailureRecord::Ending;

/// Texts of watchdogs about a collective operation that did not end. A worker whose watchdog reports another reason,
/// such as a CUDA error, is not a victim.
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

/// Texts of libraries about a connection whose other process is gone.
constexpr std::array kPeerWords{
    std::string_view("lrun::PeerLost"),
    std::string_view("Connection closed by peer"),
    std::string_view("connection closed by peer"),
    std::string_view("Connection reset by peer"),
    std::string_view("remote process exited"),
    std::string_view("remote process exiting"),
    std::string_view("ncclRemoteError"),
    std::string_view("failed to recv, got 0 bytes"),
    std::string_view(") ended during "),  // liblrun's, when a program prints only what()
    std::string_view(") left the group before "),
    std::string_view(" ended while the group was made"),
    std::string_view("a rank ended while it reported the failure of the group"),
};

/// The worker's error says so, or, without an error, one of the very last lines. An earlier line may be a warning about
/// a problem that was solved.
bool ended_with(const FailureRecord& record, const auto& all_words) {
  if (!record.error.empty()) return has_any(record.error, all_words);
  constexpr std::ptrdiff_t kNearTheEnd = 3;
  const auto count = static_cast<std::ptrdiff_t>(record.evidence.size());
  return std::any_of(record.evidence.end() - std::min(kNearTheEnd, count), record.evidence.end(),
                     [&](const std::string& line) { return has_any(line, all_words); });
}

/// Any line counts: the watchdog prints it and aborts, and long call stacks or another thread's error may follow.
bool gave_up_waiting(const FailureRecord& record, const EndFacts& facts) {
  if (ended_with(record, kTimeoutWords)) return true;
  return record.ended_by(SIGABRT) && std::any_of(facts.last_lines.begin(), facts.last_lines.end(),
                                                 [](const std::string& line) { return has_any(line, kTimeoutWords); });
}

/// The other end was no rank but a process that the program started, such as a data loader's worker.
bool lost_own_child(const FailureRecord& record) {
  return std::any_of(record.evidence.begin(), record.evidence.end(), [](const std::string& line) {
    return line.find("/multiprocessing/connection.py") != std::string::npos;
  });
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
  if (ended_with(record, kPeerWords) && !lost_own_child(record)) return Cause::kPeerLost;
  return record.ending == Ending::kSignaled ? Cause::kFatalSignal : Cause::kOwnError;
}

/// The error file comes first: the worker wrote it itself, before anything else could fail.
PrintedError printed_error_of(const FailureRecord& record, const EndFacts& facts) {
  if (!facts.error_file) {
    // An uncaught exception is printed on stderr, and the rest of stdout's buffer comes after it. But Python then exits
    // with 1: with another code the program chose to exit, and may have printed the reason on stdout.
    const bool chose_its_code = record.ending == Ending::kExited && record.value != 1 && record.value < kExitSignalBase;
    const bool may_be_an_exception =
        record.ending == Ending::kExited || record.ended_by(SIGABRT) || record.ended_by(SIGINT);
    if (!chose_its_code) {
      PrintedError printed = find_printed_error(facts.error_lines, may_be_an_exception);
      if (!printed.error.empty()) return printed;
    }
    return find_printed_error(facts.last_lines, may_be_an_exception);
  }
  PrintedError printed = find_printed_error(split_lines(facts.error_file->call_stack));
  const std::vector<std::string> message = split_lines(facts.error_file->message);
  if (!message.empty()) printed.error = message.front();
  if (printed.lines.empty()) printed.lines = message;
  return printed;
}

/// A process that the program started said why it cannot start any itself, and the program says only that it is gone.
void add_reason_of_child(const EndFacts& facts, std::vector<std::string>& lines) {
  constexpr std::array kEndOfReason{std::string_view("current process has finished its bootstrapping phase")};
  const auto is_reason = [&](const std::string& line) { return has_any(line, kEndOfReason); };
  const auto said = std::find_if(facts.last_lines.begin(), facts.last_lines.end(), is_reason);
  if (said == facts.last_lines.end() || std::any_of(lines.begin(), lines.end(), is_reason)) return;
  // Its sentence has two lines.
  lines.insert(lines.begin(), said == facts.last_lines.begin() ? said : said - 1, said + 1);
}

constexpr int kMinusOne = 255;

/// Exit codes of programs that print the reason: of Python's sys.exit('text'), Go's log.Fatal and Perl's die.
bool is_code_of_words(int code) { return code == 1 || code == kMinusOne; }

/// The program called exit(). (A shell exits with more than 128 when a signal ended its command.)
bool chose_to_end(const FailureRecord& record) {
  // 128 itself is git's code.
  return record.ending == Ending::kExited && (record.value <= kExitSignalBase || record.value == kMinusOne);
}

/// 'memory limit 64 MiB, peak memory 61.5 MiB': as much of it as is known.
std::string memory_text(const FailureRecord& record, const EndFacts& facts) {
  std::string text;
  if (facts.memory_limit_bytes > 0) text = "memory limit " + bytes_text(facts.memory_limit_bytes);
  if (record.peak_memory_kib <= 0) return text;
  return fmt::format("{}{}peak memory {}", text, text.empty() ? "" : ", ", kib_text(record.peak_memory_kib));
}

std::string detail_of(const FailureRecord& record, const EndFacts& facts) {
  switch (record.cause) {
    case Cause::kFatalSignal:
      return facts.passed_on ? "sent to lrun and passed on; the program does not handle it" : std::string();
    case Cause::kOutOfMemory:
    case Cause::kProbablyOutOfMemory:
      return memory_text(record, facts);
    case Cause::kCpuTimeLimit:
      return format_duration(Duration(std::chrono::seconds(facts.cpu_limit_seconds)));
    case Cause::kSharedMemoryFull:
      return bytes_text(facts.shared_memory_bytes);
    case Cause::kOwnError:
      return facts.full_folder.empty() ? std::string()
                                       : "no space is left in '" + facts.full_folder + "' for its output";
    default:
      return {};
  }
}

}  // namespace

void explain(FailureRecord& record, const EndFacts& facts) {
  if (!record.success()) {
    PrintedError printed = printed_error_of(record, facts);
    record.error = printed.error.substr(0, FailureRecord::kMostErrorBytes);
    record.location = printed.location.substr(0, FailureRecord::kMostErrorBytes);
    add_reason_of_child(facts, printed.lines);
    record.evidence = bounded_evidence(std::move(printed.lines));
    if (facts.error_file) {
      record.error_file = facts.error_file_path;
      record.error_time = facts.error_file->time;
    }
  }
  record.cause = classify(record, facts);
  record.detail = detail_of(record, facts);
  // After the error was found: whether the worker is a victim depends on several lines.
  if (record.error.empty() && record.cause == Cause::kOwnError && chose_to_end(record)) {
    const std::string said = find_plain_error(facts.last_lines, facts.error_lines, is_code_of_words(record.value));
    record.error = said.substr(0, FailureRecord::kMostErrorBytes);
  }
}

}  // namespace lrun::inline core
