#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/event_loop.h"
#include "base/folder.h"
#include "inspect/rank_meter.h"
#include "inspect/run_status.h"
#include "plan/metrics_target.h"
#include "report/message_sink.h"
#include "store/connection_acceptor.h"
#include "store/http_server.h"

namespace lrun::launcher {

/// Offers the metrics of this launcher's ranks while they run: at a port to whoever asks over HTTP, or in a file. At a
/// port nothing is done unless somebody asks; at most kMostConnections are open, and one more closes the oldest. A file
/// is written anew every kInterval, and a last time when the run ends. What cannot be offered causes one warning, and
/// the run goes on. One thread.
class RunMetrics {
 public:
  /// Begins at once. Everything must outlive this.
  /// \param status  of this launcher, without the use of CPU and memory
  RunMetrics(EventLoop& loop, const MetricsTarget& target, MessageSink& sink, std::function<RunStatus()> status);
  RunMetrics(const RunMetrics&) = delete;
  RunMetrics& operator=(const RunMetrics&) = delete;

  /// The run has ended: nobody can ask any more.
  void end(int exit_code);

  static constexpr std::size_t kMostConnections = 8;
  static constexpr Duration kInterval{10'000};

 private:
  void listen(const MetricsTarget& target);
  [[nodiscard]] std::string answer(const HttpRequest& request);
  void open_file(const std::string& file);
  void write_again();
  void write(std::optional<int> exit_code);
  [[nodiscard]] std::string text(std::optional<int> exit_code);
  void warn(const std::string& what);

  EventLoop& loop_;
  MessageSink& sink_;
  std::function<RunStatus()> status_;
  RankMeter meter_;
  std::optional<HttpServer> server_;
  std::optional<ConnectionAcceptor> acceptor_;
  Folder folder_;  ///< of the file
  std::string file_name_;
  EventLoop::Timer next_;
  bool has_warned_ = false;
};

}  // namespace lrun::launcher
