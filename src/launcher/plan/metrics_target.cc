#include "plan/metrics_target.h"

#include <utility>

#include "base/numeric_address.h"
#include "base/whole_number.h"
#include "plan/rendezvous_request.h"

namespace lrun::launcher {

std::optional<MetricsTarget> parse_metrics_target(std::string_view text) {
  if (const auto port = whole_number<int>(text)) {
    if (*port < 0 || *port > kMostPort) return std::nullopt;
    return MetricsTarget{.address = "127.0.0.1", .port = *port};
  }
  if (text.find('/') != std::string_view::npos || text.ends_with(".prom"))
    return MetricsTarget{.file = std::string(text)};
  std::optional<Endpoint> endpoint = parse_endpoint(text);
  if (!endpoint || !endpoint->port) return std::nullopt;
  std::string loopback = loopback_address_of(endpoint->host);
  std::string& address = loopback.empty() ? endpoint->host : loopback;
  if (!is_numeric_address(address)) return std::nullopt;
  return MetricsTarget{.address = std::move(address), .port = *endpoint->port};
}

std::string text_of(const MetricsTarget& target) {
  return target.address.empty() ? target.file : text_of(Endpoint{target.address, target.port});
}

}  // namespace lrun::launcher
