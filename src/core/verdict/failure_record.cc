// In: how a worker ended, with cause and error. Out: texts for people, and JSON that other launchers and result.json
// read.
#include "verdict/failure_record.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <utility>

#include "base/json.h"
#include "base/signal_names.h"
#include "process/exit_codes.h"

namespace lrun::inline core {
namespace {

using Json = nlohmann::json;
using Ending = FailureRecord::Ending;

constexpr std::array<std::pair<Ending, std::string_view>, 4> kEndingNames{{
    {Ending::kExited, "exited"},
    {Ending::kSignaled, "signaled"},
    {Ending::kExecFailed, "exec_failed"},
    {Ending::kLost, "lost"},
}};
constexpr std::size_t kMostRecordBytes = 64 * 1024;

std::string_view ending_name(Ending ending) {
  for (const auto& [value, name] : kEndingNames) {
    if (value == ending) return name;
  }
  return "exited";
}

std::optional<Ending> ending_named(const std::string& name) {
  for (const auto& [value, known] : kEndingNames) {
    if (known == name) return value;
  }
  return std::nullopt;
}

FailureRecord read_fields(const Json& json) {
  FailureRecord record;
  record.node = json.at("node").get<std::string>();
  record.node_rank = json_integer(json.at("node_rank"));
  record.rank = json_integer(json.at("rank"));
  record.local_rank = json_integer(json.at("local_rank"));
  record.pid = json_integer(json.at("pid"));
  record.attempt = json_integer(json.at("attempt"));
  record.device = json.at("device").get<std::string>();
  record.steady_ns = json_integer<std::int64_t>(json.at("steady_ns"));
  record.wall_ns = json_integer<std::int64_t>(json.at("wall_ns"));
  record.lifetime_ms = json_integer<std::int64_t>(json.at("lifetime_ms"));
  record.peak_memory_kib = json_integer<std::int64_t>(json.value("peak_memory_kib", Json(-1)));
  record.value = json_integer(json.at("value"));
  record.core_dumped = json.at("core_dumped").get<bool>();
  record.stop_signal = json_integer(json.at("stop_signal"));
  record.evidence = bounded_evidence(json.at("evidence").get<std::vector<std::string>>());
  const auto bounded = [&](const char* key) {
    return json.at(key).get<std::string>().substr(0, FailureRecord::kMostErrorBytes);
  };
  record.error = bounded("error");
  record.location = bounded("location");
  record.detail = bounded("detail");
  record.error_file = json.at("error_file").get<std::string>();
  record.logs = json.value("logs", std::string());
  record.error_time = json_integer<std::int64_t>(json.at("error_time"));
  return record;
}

/// A shell exits with 128 + the number of the signal that ended its command.
std::string shell_meaning(int code) {
  constexpr std::array kFatal{SIGHUP, SIGINT, SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGKILL, SIGSEGV, SIGTERM};
  const bool fatal = std::find(kFatal.begin(), kFatal.end(), code - kExitSignalBase) != kFatal.end();
  return fatal ? fmt::format("a shell's exit code for {}", signal_name(code - kExitSignalBase)) : std::string();
}

bool in_range(const FailureRecord& record) {
  const bool counted = record.node_rank >= 0 && record.rank >= 0 && record.local_rank >= 0 && record.attempt >= 0;
  const bool ended = record.value >= 0 && record.stop_signal >= 0 && record.lifetime_ms >= 0 && record.error_time >= 0;
  return counted && ended;
}

}  // namespace

void FailureRecord::set_status(const ExitStatus& status) {
  ending = status.kind == ExitStatus::Kind::kExited     ? Ending::kExited
           : status.kind == ExitStatus::Kind::kSignaled ? Ending::kSignaled
                                                        : Ending::kLost;
  value = status.value;
  core_dumped = status.core_dumped;
}

std::string FailureRecord::describe() const {
  const std::string reason = describe_reason();
  return reason.empty() ? describe_status() : describe_status() + ": " + reason;
}

std::string FailureRecord::describe_status() const {
  const std::string in_brackets = detail.empty() ? std::string() : fmt::format(" ({})", detail);
  switch (ending) {
    case Ending::kExecFailed:
      return fmt::format("could not be executed: {}", std::strerror(value));
    case Ending::kLost:
      return "was lost: how it ended is not known";
    case Ending::kExited:
      return ExitStatus{ExitStatus::Kind::kExited, value, false}.text();
    case Ending::kSignaled:
      break;
  }
  if (cause == Cause::kOutOfMemory) return "was killed by the kernel's out-of-memory killer" + in_brackets;
  if (cause == Cause::kProbablyOutOfMemory)
    return "was killed, probably by the kernel's out-of-memory killer" + in_brackets;
  if (cause == Cause::kCpuTimeLimit && value == SIGKILL) return "was killed by the kernel";
  return ExitStatus{ExitStatus::Kind::kSignaled, value, core_dumped}.text();
}

std::string FailureRecord::describe_reason() const {
  const std::string in_brackets = detail.empty() ? std::string() : fmt::format(" ({})", detail);
  const bool itself = ending == Ending::kSignaled;  // else one of the processes that it started
  switch (cause) {
    case Cause::kOutOfMemory:
      return itself ? std::string() : "the kernel's out-of-memory killer killed one of its processes" + in_brackets;
    case Cause::kProbablyOutOfMemory:
      return itself ? std::string()
                    : "probably the kernel's out-of-memory killer killed one of its processes" + in_brackets;
    case Cause::kFatalSignal:
    case Cause::kEndedEarly:
      return detail;
    case Cause::kSharedMemoryFull:
      return "/dev/shm is full" + in_brackets;
    case Cause::kCpuTimeLimit:
      return fmt::format("{} its CPU time limit of {}", itself ? "it used up" : "one of its processes used up", detail);
    case Cause::kWatchdogAbort:
      return "it gave up waiting for the other ranks";
    case Cause::kPeerLost:
      return "it lost the connection to another worker";
    case Cause::kOwnError:
      return detail.empty() ? shell_meaning(value) : detail;
    default:
      return {};
  }
}

std::vector<std::string> bounded_evidence(std::vector<std::string> lines) {
  std::size_t bytes = 0;
  std::size_t first = lines.size();
  while (first > 0 && bytes + lines[first - 1].size() + 1 <= FailureRecord::kMostEvidenceBytes) {
    bytes += lines[--first].size() + 1;
  }
  if (first == lines.size() && !lines.empty()) {  // one line is too long: its end matters most
    std::string last = std::move(lines.back());
    last.erase(0, last.size() - (FailureRecord::kMostEvidenceBytes - 1));
    return {std::move(last)};
  }
  lines.erase(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(first));
  return lines;
}

std::string to_json(const FailureRecord& record) {
  std::string json = fmt::format(
      R"({{"node":{},"node_rank":{},"rank":{},"local_rank":{},"pid":{},"attempt":{},"device":{},"steady_ns":{},"wall_ns":{})",
      json_string(record.node), record.node_rank, record.rank, record.local_rank, record.pid, record.attempt,
      json_string(record.device), record.steady_ns, record.wall_ns);
  json += fmt::format(R"(,"lifetime_ms":{},"ending":"{}","value":{},"core_dumped":{},"stop_signal":{},"cause":"{}")",
                      record.lifetime_ms, ending_name(record.ending), record.value, record.core_dumped,
                      record.stop_signal, name_of(record.cause));
  json += fmt::format(R"(,"error":{},"location":{},"detail":{},"evidence":{},"error_file":{},"error_time":{})",
                      json_string(record.error), json_string(record.location), json_string(record.detail),
                      json_array(record.evidence), json_string(record.error_file), record.error_time);
  if (record.peak_memory_kib >= 0) json += fmt::format(R"(,"peak_memory_kib":{})", record.peak_memory_kib);
  if (!record.logs.empty()) json += fmt::format(R"(,"logs":{})", json_string(record.logs));
  return json + "}";
}

std::optional<FailureRecord> failure_record_from_json(std::string_view text) {
  if (text.size() > kMostRecordBytes) return std::nullopt;
  try {
    const Json json = Json::parse(text);
    FailureRecord record = read_fields(json);
    const std::optional<Ending> ending = ending_named(json.at("ending").get<std::string>());
    const std::optional<Cause> cause = cause_named(json.at("cause").get<std::string>());
    if (!ending || !cause) return std::nullopt;
    record.ending = *ending;
    record.cause = *cause;
    return in_range(record) ? std::optional(std::move(record)) : std::nullopt;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

}  // namespace lrun::inline core
