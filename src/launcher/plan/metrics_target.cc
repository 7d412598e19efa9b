#include "plan/metrics_target.h"

#include <utility>

#include "base/numeric_address.h"
#include "base/whole_number.h"
#include "plan/rendezvous_request.h"

namespace lrun::launcher {
namespace {

std::optional<MetricsTarget> parse_place(std::string_view text) {
  if (const auto port = whole_number<int>(text)) {
    if (*port < 0 || *port > kMostPort) return std::nullopt;
    return MetricsTarget{.address = "127.0.0.1", .port = *port};
  }
  std::optional<Endpoint> endpoint = parse_endpoint(text);
  if (!endpoint || !endpoint->port) return std::nullopt;
  std::string loopback = loopback_address_of(endpoint->host);
  std::string& address = loopback.empty() ? endpoint->host : loopback;
  if (!is_numeric_address(address)) return std::nullopt;
  return MetricsTarget{.address = std::move(address), .port = *endpoint->port};
}

}  // namespace

std::optional<MetricsTarget> parse_metrics_target(std::string_view text) {
  if (text == "/dev/null") return MetricsTarget{};
  constexpr std::string_view kPath = "/metrics";
  const bool has_path = text.ends_with(kPath);
  if (auto place = parse_place(has_path ? text.substr(0, text.size() - kPath.size()) : text)) return place;
  const bool is_path = text.find('/') != std::string_view::npos || text.ends_with(".prom");
  return is_path ? std::optional(MetricsTarget{.file = std::string(text)}) : std::nullopt;
}

std::string text_of(const MetricsTarget& target) {
  return target.address.empty() ? target.file : text_of(Endpoint{target.address, target.port});
}

}  // namespace lrun::launcher
