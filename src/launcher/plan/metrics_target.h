#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lrun::launcher {

/// Where a launcher offers the metrics of its ranks: --metrics. A value.
struct MetricsTarget {
  std::string file;     ///< a path; empty: at the port
  std::string address;  ///< numeric: '127.0.0.1'; empty: in the file
  int port = 0;         ///< 0: the kernel chooses

  [[nodiscard]] bool is_given() const { return !file.empty() || !address.empty(); }
  bool operator==(const MetricsTarget&) const = default;
};

/// Reads a port, which is one of the loopback address, a numeric address with a port, both also with '/metrics' behind
/// them, or the path of a file: another text with a '/', or one with '.prom' at its end. '/dev/null' gives none. Empty:
/// it is none of them. Pure.
std::optional<MetricsTarget> parse_metrics_target(std::string_view text);

/// '9844' as '127.0.0.1:9844', and a file as its path.
std::string text_of(const MetricsTarget& target);

}  // namespace lrun::launcher
