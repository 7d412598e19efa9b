// In: the status of this launcher's ranks. Out: their metrics, at a port or in a file. NodeLauncher has one with
// --metrics.
#include "run/run_metrics.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "base/replaced_file.h"
#include "report/metrics_text.h"
#include "store/http_answer.h"
#include "store/listening_socket.h"

namespace lrun::launcher {

RunMetrics::RunMetrics(EventLoop& loop, const MetricsTarget& target, MessageSink& sink,
                       std::function<RunStatus()> status)
    : loop_(loop), sink_(sink), status_(std::move(status)) {
  try {
    if (target.file.empty()) {
      listen(target);
    } else {
      open_file(target.file);
    }
  } catch (const std::system_error& error) {
    warn(fmt::format("{}; the run goes on without them", error.what()));
  }
}

void RunMetrics::listen(const MetricsTarget& target) {
  server_.emplace(
      loop_, [this](const HttpRequest& request) { return answer(request); },
      [](int /*socket*/, const std::string& /*reason*/) {});
  acceptor_.emplace(
      loop_, open_listening_socket(StoreReach::kLoopback, static_cast<std::uint16_t>(target.port), target.address),
      [this](Fd socket) {
        if (server_->num_connections() >= kMostConnections) server_->make_room();
        server_->add_connection(std::move(socket), {});
      },
      [this](const std::string& line) { warn(line); });
  acceptor_->start();
  if (target.port != 0) return;
  const MetricsTarget chosen{.address = target.address, .port = acceptor_->port()};
  sink_.note(fmt::format("metrics are at http://{}/metrics", text_of(chosen)));
}

std::string RunMetrics::answer(const HttpRequest& request) {
  const std::string_view path = std::string_view(request.target).substr(0, request.target.find('?'));
  if (path != "/metrics")
    return http_answer("404 Not Found", "metrics are at /metrics\n", "Content-Type: text/plain\r\n");
  if (request.method != "GET") return http_answer("405 Method Not Allowed", {}, "Allow: GET\r\n");
  return http_answer("200 OK", text({}), fmt::format("Content-Type: {}\r\n", kMetricsType));
}

void RunMetrics::open_file(const std::string& file) {
  const std::filesystem::path path(file);
  file_name_ = path.filename();
  folder_ = Folder::open(path.has_parent_path() ? path.parent_path() : ".");
  write_again();
}

void RunMetrics::write_again() {
  write({});
  next_ = loop_.after(kInterval, [this] { write_again(); });
}

void RunMetrics::write(std::optional<int> exit_code) {
  constexpr mode_t kForCollectors = 0644;
  const int error = replace_file(folder_, file_name_, text(exit_code), kForCollectors);
  if (error != 0)
    warn(fmt::format("'{}': {}", (folder_.path() / file_name_).string(), std::generic_category().message(error)));
}

std::string RunMetrics::text(std::optional<int> exit_code) {
  RunStatus status = status_();
  meter_.measure(status, read_process_table());
  if (exit_code) status.phase = "over";
  return metrics_text(status, exit_code);
}

void RunMetrics::warn(const std::string& what) {
  if (!std::exchange(has_warned_, true)) sink_.warn(fmt::format("metrics: {}", what));
}

void RunMetrics::end(int exit_code) {
  next_.cancel();
  acceptor_.reset();
  server_.reset();
  if (folder_) write(exit_code);
}

}  // namespace lrun::launcher
