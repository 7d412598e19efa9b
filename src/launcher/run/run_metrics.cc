// In: the status of this launcher's ranks. Out: their metrics, at a port or in a file. NodeLauncher has one with
// --metrics.
#include "run/run_metrics.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <system_error>

#include "base/folder.h"
#include "base/numeric_address.h"
#include "base/replaced_file.h"
#include "base/small_file.h"
#include "report/metrics_text.h"
#include "store/http_answer.h"
#include "store/listening_socket.h"

namespace lrun::launcher {
namespace {

constexpr Duration kAnswerLife(1000);

std::filesystem::path folder_of(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
}

/// Writes the whole file or none of it. \return why not; empty: it is written.
std::string replace(const std::filesystem::path& file, std::string_view text) {
  if (const auto problem = problem_of_metrics_file(file)) return problem->what();
  constexpr mode_t kForCollectors = 0644;
  int error = 0;
  try {
    const Folder folder = Folder::open(folder_of(file));
    error = replace_file(folder, file.filename(), text, kForCollectors);
    // Its reader is another user, whatever our umask is.
    if (error == 0) (void)::fchmodat(folder.fd(), file.filename().c_str(), kForCollectors, 0);
  } catch (const std::system_error& refusal) {
    error = refusal.code().value();
  }
  if (error == 0) return {};
  return fmt::format("cannot write metrics to '{}': {}", file.string(), std::generic_category().message(error));
}

}  // namespace

MetricsTarget metrics_target(const LaunchPlan& plan) {
  MetricsTarget target = plan.output.metrics.value;
  const NodePlan& node = plan.nodes.front();
  const int number = plan.is_of_one_rank ? node.workers.front().local_rank : 0;
  if (target.port != 0) target.port += number;
  if (target.file.empty() || !plan.rendezvous) return target;
  std::filesystem::path file(target.file);
  const std::string of_rank = plan.is_of_one_rank ? fmt::format("-{}", number) : "";
  file.replace_filename(fmt::format("{}-{}{}{}", file.stem().string(), node.name, of_rank, file.extension().string()));
  target.file = file;
  return target;
}

std::optional<UserError> problem_of_metrics_file(const std::filesystem::path& file) {
  const std::string what = fmt::format("cannot write metrics to '{}'", file.string());
  struct stat facts {};
  const bool is_there = ::lstat(file.c_str(), &facts) == 0;
  if (!file.has_filename() || (is_there && S_ISDIR(facts.st_mode))) {
    return UserError(what + ": it is a folder",
                     fmt::format("name a file in it, as in '{}'", (file / "lrun.prom").string()));
  }
  const bool is_ours =
      S_ISREG(facts.st_mode) && (facts.st_size == 0 || are_metrics(read_file_head(file, kMostMetricsHead)));
  if (is_there && !is_ours) {
    return UserError(what + ": it is something else, which would be lost", "name a file that is not there yet");
  }
  if (::access(folder_of(file).c_str(), W_OK | X_OK) == 0) return std::nullopt;
  return UserError(fmt::format("{}: {}", what, std::generic_category().message(errno)),
                   "name a file in a folder that exists, where you may write");
}

RunMetrics::RunMetrics(Facts facts) : facts_(std::move(facts)) {
  if (!facts_.target.file.empty()) {
    write_again();
    return;
  }
  try {
    listen();
  } catch (const std::system_error& error) {
    warn(fmt::format("metrics: {}; the run goes on without them", error.what()));
  }
}

void RunMetrics::listen() {
  const MetricsTarget& target = facts_.target;
  if (target.port > kMostPort) {
    return warn(fmt::format("metrics: there is no port {} for this rank; the run goes on without them", target.port));
  }
  server_.emplace(
      facts_.loop, [this](const HttpRequest& request) { return answer(request); },
      [](int /*socket*/, const std::string& /*reason*/) {});
  acceptor_.emplace(
      facts_.loop,
      open_listening_socket(StoreReach::kLoopback, static_cast<std::uint16_t>(target.port), target.address),
      [this](Fd socket) { add(std::move(socket)); }, [this](const std::string& line) { warn("metrics: " + line); });
  acceptor_->start();
  if (target.port != 0) return;
  const bool is_any = target.address == "0.0.0.0" || target.address == "::";
  const MetricsTarget chosen{.address = is_any ? facts_.status().host : target.address, .port = acceptor_->port()};
  facts_.sink.note(fmt::format("metrics are at http://{}/metrics", text_of(chosen)));
}

/// A training must not end because the kernel has no room for one who asks.
void RunMetrics::add(Fd socket) {
  if (server_->num_connections() >= kMostConnections) server_->make_room();
  try {
    server_->add_connection(std::move(socket), {});
  } catch (const std::exception& error) {
    warn(fmt::format("metrics: {}", error.what()));
  }
}

std::string RunMetrics::answer(const HttpRequest& request) {
  const std::string_view path = std::string_view(request.target).substr(0, request.target.find('?'));
  if (path != "/metrics")
    return http_answer("404 Not Found", "metrics are at /metrics\n", "Content-Type: text/plain\r\n");
  if (request.method != "GET") return http_answer("405 Method Not Allowed", {}, "Allow: GET\r\n");
  if (answer_.empty() || steady_now() - answered_ >= kAnswerLife) {
    answer_ = http_answer("200 OK", text({}), fmt::format("Content-Type: {}\r\n", kMetricsType));
    answered_ = steady_now();
  }
  return answer_;
}

void RunMetrics::write_again() {
  write({});
  next_ = facts_.loop.after(kInterval, [this] { write_again(); });
}

void RunMetrics::write(std::optional<int> exit_code) {
  const std::string refusal = replace(facts_.target.file, text(exit_code));
  if (refusal.empty()) {
    has_warned_ = false;
  } else {
    warn(refusal);
  }
}

std::string RunMetrics::text(std::optional<int> exit_code) {
  RunStatus status = facts_.status();
  if (exit_code) status.phase = "over";
  meter_.measure(status, read_process_table());
  for (WorkerStatus& worker : status.workers) {
    keep_cpu_time(worker);
    const bool printed_nothing = worker.running && worker.quiet_ms < 0;
    if (printed_nothing && facts_.reads_output) worker.quiet_ms = worker.use.lived_ms;
  }
  return metrics_text(status, exit_code);
}

/// A counter must not fall: the time of a process is lost where nobody waits for its end.
void RunMetrics::keep_cpu_time(WorkerStatus& worker) {
  auto& [pid, most] = cpu_ms_[worker.rank];
  if (std::exchange(pid, worker.pid) != worker.pid) most = -1;
  most = worker.use.cpu_ms = std::max(most, worker.use.cpu_ms);
}

void RunMetrics::warn(const std::string& what) {
  if (!std::exchange(has_warned_, true)) facts_.sink.warn(what);
}

void RunMetrics::end(int exit_code) {
  next_.cancel();
  acceptor_.reset();
  server_.reset();
  has_warned_ = false;  // the last one counts
  if (!facts_.target.file.empty()) write(exit_code);
}

}  // namespace lrun::launcher
