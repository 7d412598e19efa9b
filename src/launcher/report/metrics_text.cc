// In: the status of a launcher's ranks. Out: the metrics that Prometheus and its like collect. RunMetrics offers them.
// Pure.
#include "report/metrics_text.h"

#include <fmt/format.h>

#include <functional>

#include "base/utf8.h"
#include "lrun_version.h"

namespace lrun::launcher {
namespace {

/// The value of a label in its quotes. Bytes that are not UTF-8 become U+FFFD.
std::string label_text(std::string_view text) {
  std::string quoted = "\"";
  while (!text.empty()) {
    const std::size_t bytes = first_character(text).bytes;
    if (bytes == 0) {
      quoted += "\uFFFD";
    } else if (text.front() == '\n') {
      quoted += "\\n";
    } else {
      if (text.front() == '"' || text.front() == '\\') quoted += '\\';
      quoted += text.substr(0, bytes);
    }
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return quoted + '"';
}

/// Empty: it is not known.
std::string seconds_text(std::int64_t ms) {
  return ms < 0 ? std::string() : fmt::format("{}.{:03}", ms / 1000, ms % 1000);
}

/// Writes one metric after the other.
class Writer {
 public:
  explicit Writer(const RunStatus& status) : status_(status), run_("run=" + label_text(status.run_id)) {
    launcher_ = ",host=" + label_text(status.host);
    if (!status.workers.empty()) launcher_ += fmt::format(",first_rank=\"{}\"", status.workers.front().rank);
  }

  /// A metric of the run. \param labels  further ones, each with a comma before it
  void of_run(std::string_view name, std::string_view help, std::string_view value, std::string_view labels = {}) {
    begin(name, "gauge", help);
    line(name, launcher_ + std::string(labels), value);
  }

  void count_of_run(std::string_view name, std::string_view help, int value) {
    begin(name, "counter", help);
    line(fmt::format("{}_total", name), launcher_, std::to_string(value));
  }

  /// A metric that each rank has. \param value  empty: it is not known of this rank
  void of_ranks(std::string_view name, std::string_view type, std::string_view help,
                const std::function<std::string(const WorkerStatus& worker)>& value) {
    bool has_begun = false;
    for (const WorkerStatus& worker : status_.workers) {
      const std::string text = value(worker);
      if (text.empty()) continue;
      if (!has_begun) begin(name, type, help);
      has_begun = true;
      line(type == "counter" ? fmt::format("{}_total", name) : std::string(name),
           fmt::format(",rank=\"{}\",local_rank=\"{}\"", worker.rank, worker.local_rank), text);
    }
  }

  [[nodiscard]] std::string text() const { return text_ + "# EOF\n"; }

 private:
  void begin(std::string_view name, std::string_view type, std::string_view help) {
    text_ += fmt::format("# TYPE {} {}\n", name, type);
    for (const std::string_view unit : {"seconds", "bytes"}) {
      if (name.ends_with(unit)) text_ += fmt::format("# UNIT {} {}\n", name, unit);
    }
    text_ += fmt::format("# HELP {} {}\n", name, help);
  }

  void line(std::string_view name, std::string_view labels, std::string_view value) {
    text_ += fmt::format("{}{{{}{}}} {}\n", name, run_, labels, value);
  }

  const RunStatus& status_;
  std::string run_;
  std::string launcher_;  ///< which of the run
  std::string text_;
};

void write_ranks(Writer& out) {
  out.of_ranks("lrun_rank_running", "gauge", "1 while the process of the rank runs.",
               [](const WorkerStatus& worker) { return std::string(worker.running ? "1" : "0"); });
  out.of_ranks("lrun_rank_stopped", "gauge", "1 while a signal has stopped the process of the rank.",
               [](const WorkerStatus& worker) { return std::string(worker.stopped ? "1" : "0"); });
  out.of_ranks("lrun_rank_cpu_seconds", "counter", "Processor time of the rank and the processes below it.",
               [](const WorkerStatus& worker) { return seconds_text(worker.use.cpu_ms); });
  out.of_ranks("lrun_rank_resident_memory_bytes", "gauge",
               "Memory of the rank and the processes below it; what they share counts for each.",
               [](const WorkerStatus& worker) {
                 return worker.use.resident_bytes < 0 ? std::string() : std::to_string(worker.use.resident_bytes);
               });
  out.of_ranks("lrun_rank_quiet_seconds", "gauge", "Time since a rank that runs printed anything.",
               [](const WorkerStatus& worker) { return seconds_text(worker.running ? worker.quiet_ms : -1); });
  out.of_ranks("lrun_rank_steps", "counter", "Training steps that the rank reported since it started.",
               [](const WorkerStatus& worker) {
                 return worker.steps.count == 0 ? std::string() : std::to_string(worker.steps.count);
               });
  out.of_ranks("lrun_rank_last_step_age_seconds", "gauge", "Time since a rank that runs reported a training step.",
               [](const WorkerStatus& worker) {
                 const bool is_known = worker.running && worker.steps.count > 0;
                 return seconds_text(is_known ? worker.steps.last_ms_ago : -1);
               });
}

}  // namespace

bool are_metrics(std::string_view head) { return head.starts_with("# TYPE lrun_run_info "); }

std::string metrics_text(const RunStatus& status, std::optional<int> exit_code) {
  Writer out(status);
  out.of_run("lrun_run_info", "The run, and the host of this launcher.", "1",
             fmt::format(",strategy={},version={}", label_text(status.strategy), label_text(LRUN_VERSION)));
  out.of_run("lrun_run_phase", "1 for what the run does now.", "1", ",phase=" + label_text(status.phase));
  out.of_run("lrun_run_start_time_seconds", "When the run began, since the epoch.", seconds_text(status.started_ms));
  out.of_run("lrun_run_world_size", "Ranks of the job.", std::to_string(status.world_size));
  out.of_run("lrun_run_nodes", "Launchers of the job.", std::to_string(status.nodes));
  out.count_of_run("lrun_run_restarts", "Restarts of all workers after a failure.", status.attempt);
  if (exit_code) out.of_run("lrun_run_exit_code", "The exit code of lrun.", std::to_string(*exit_code));
  write_ranks(out);
  return out.text();
}

}  // namespace lrun::launcher
