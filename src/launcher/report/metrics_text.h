#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "inspect/run_status.h"

namespace lrun::launcher {

/// The MIME type of metrics_text().
inline constexpr std::string_view kMetricsType = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The metrics of a launcher's ranks in the OpenMetrics format 1.0.0. Readers of Prometheus's older text format, such
/// as node_exporter, take it as well: it has gauges and counters only. A value that is not known has no line. Labels
/// tell apart the lines of all launchers of all runs, which may be collected together. Pure.
/// \param exit_code  of the run, once it has ended
std::string metrics_text(const RunStatus& status, std::optional<int> exit_code);

/// A file that begins so was written by metrics_text(). \param head  its first kMostMetricsHead bytes
inline constexpr std::size_t kMostMetricsHead = 64;
bool are_metrics(std::string_view head);

}  // namespace lrun::launcher
