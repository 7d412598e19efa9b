// In: a worker and how it ended. Out: its FailureRecord, with the evidence that logs, error file and kernel have.
// Called by Supervisor.
#include "supervise/end_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/clock.h"
#include "base/small_file.h"
#include "verdict/machine_evidence.h"

namespace lrun::launcher {
namespace {

std::string device_name(const NodePlan& node, int local_rank) {
  const auto worker = std::find_if(node.workers.begin(), node.workers.end(),
                                   [local_rank](const WorkerPlan& one) { return one.local_rank == local_rank; });
  if (worker == node.workers.end() || worker->devices.size() != 1) return {};
  const DeviceId& device = worker->devices.front();
  if (device.kind == DeviceKind::kTpu) return fmt::format("TPU chip {}", device.id);
  return device.kind == DeviceKind::kGpu ? fmt::format("GPU {}", device.id) : std::string();
}

/// A file that cannot be parsed counts as missing.
void read_error_file(const std::filesystem::path& folder, EndFacts& facts, int local_rank) {
  if (folder.empty()) return;
  const std::filesystem::path file = folder / std::to_string(local_rank) / "error.json";
  facts.error_file = parse_error_file(read_small_file(file, ErrorFile::kMostBytes).value_or(""));
  facts.error_file_path = file.string();
}

}  // namespace

EndRecorder::EndRecorder(const NodePlan& node, const LogRouter& logs, Facts facts)
    : node_(node), logs_(logs), facts_(std::move(facts)), memory_(facts_.cgroup) {}

FailureRecord EndRecorder::begin_record(const Worker& worker) const {
  const SteadyTime now = std::chrono::steady_clock::now();
  FailureRecord record;
  record.node = facts_.host;
  record.node_rank = node_.node_rank;
  record.rank = worker.rank;
  record.local_rank = worker.local_rank;
  record.pid = worker.process.pid();
  record.attempt = facts_.attempt;
  record.device = device_name(node_, worker.local_rank);
  record.steady_ns = nanoseconds(now);
  record.wall_ns = nanoseconds(std::chrono::system_clock::now());
  record.lifetime_ms = std::chrono::duration_cast<Duration>(now - worker.started).count();
  const auto sent = stop_signals_.find(record.pid);
  record.stop_signal = sent == stop_signals_.end() ? 0 : sent->second;
  return record;
}

FailureRecord EndRecorder::ended(const Worker& worker, const ExitStatus& status) {
  FailureRecord record = begin_record(worker);
  record.set_status(status);
  record.peak_memory_kib = worker.process.peak_memory_kib();
  if (!record.success()) name_logs(record);
  EndFacts facts = evidence_of(record);
  facts.cpu_limit_seconds = worker.cpu_limit_seconds;
  explain(record, facts);
  // A worker that is started later may get the number of one that was reaped.
  stop_signals_.erase(record.pid);
  return record;
}

FailureRecord EndRecorder::lost(const Worker& worker) {
  FailureRecord record = begin_record(worker);
  record.ending = FailureRecord::Ending::kLost;
  name_logs(record);
  explain(record, evidence_of(record));
  return record;
}

void EndRecorder::name_logs(FailureRecord& record) const {
  if (record.stopped_by_lrun()) return;
  for (const LogStream stream : kLogStreams) {
    if (record.logs.empty()) record.logs = logs_.file(record.local_rank, stream).parent_path().string();
  }
}

/// The kernel is asked only about the ends that it may have caused.
EndFacts EndRecorder::evidence_of(const FailureRecord& record) {
  EndFacts facts;
  if (record.success()) return facts;
  std::size_t later_bytes = 0;
  for (TailLine& line : logs_.tail(record.local_rank)) {
    later_bytes = line.stream == LogStream::kErr ? 0 : later_bytes + line.text.size() + 1;
    if (line.stream == LogStream::kErr) facts.error_lines.push_back(line.text);
    facts.last_lines.push_back(std::move(line.text));
  }
  // Python and C hold back as much of stdout. What comes within it may be older than the last line on stderr.
  constexpr std::size_t kBufferBytes = 8192;
  if (later_bytes > kBufferBytes) facts.error_lines.clear();
  read_error_file(facts_.error_folder, facts, record.local_rank);
  facts.passed_on = record.ending == FailureRecord::Ending::kSignaled && passed_on_.contains(record.value);
  add_machine_evidence(record, memory_, facts);
  if (facts_.workers_write_files) add_full_folder(record, facts_.error_folder.string(), facts);
  return facts;
}

}  // namespace lrun::launcher
