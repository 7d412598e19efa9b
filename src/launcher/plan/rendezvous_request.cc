#include "plan/rendezvous_request.h"

#include <algorithm>

#include "base/numeric_address.h"
#include "base/split.h"
#include "base/user_error.h"
#include "base/whole_number.h"

namespace lrun::launcher {
namespace {

bool is_host_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char letter) {
    const bool is_letter = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z');
    return is_letter || (letter >= '0' && letter <= '9') || letter == '.' || letter == '-' || letter == '_' ||
           letter == ':';
  });
}

std::optional<int> port_in(std::string_view text) {
  const std::optional<int> port = whole_number<int>(text);
  return port && *port >= 0 && *port <= kMostPort ? port : std::nullopt;
}

}  // namespace

std::string text_of(const Endpoint& endpoint) {
  const bool brackets = endpoint.host.find(':') != std::string::npos;
  return (brackets ? "[" + endpoint.host + "]" : endpoint.host) +
         (endpoint.port ? ":" + std::to_string(*endpoint.port) : "");
}

std::optional<Endpoint> parse_endpoint(std::string_view text) {
  text = trimmed(text, " \t\r\n");
  std::string_view host = text;
  std::optional<std::string_view> port;
  const std::size_t colon = text.ends_with(']') ? std::string_view::npos : text.rfind(':');
  if (colon != std::string_view::npos) {
    host = text.substr(0, colon);
    port = text.substr(colon + 1);
  }
  if (host.starts_with('[')) {
    if (!host.ends_with(']')) return std::nullopt;
    host = host.substr(1, host.size() - 2);
  }
  if (!is_host_name(host)) return std::nullopt;
  Endpoint endpoint{std::string(host), {}};
  if (port) endpoint.port = port_in(*port);
  return port && !endpoint.port ? std::nullopt : std::optional(std::move(endpoint));
}

int port_of(const RendezvousRequest& request) {
  const Endpoint& endpoint = request.endpoint.value;
  if (endpoint.port) return *endpoint.port;
  if (request.uses_etcd()) return kPortOfEtcd;
  if (request.backend.value == RendezvousBackend::kC10d) return kPortOfC10d;
  const bool is_port = endpoint.host.find_first_not_of("0123456789") == std::string::npos;
  if (is_port) {
    throw UserError("'" + as_written(request.endpoint) + "' has no host",
                    "write '" + as_written(request.endpoint.origin, "HOST:" + endpoint.host) +
                        "' with the name of one of the nodes");
  }
  throw UserError("'" + as_written(request.endpoint) + "' has no port",
                  "write '" + as_written(request.endpoint.origin, text_of(Endpoint{endpoint.host, kPortOfStatic})) +
                      "', or '--master-port 29500' instead");
}

std::vector<std::string> hosts_in(const RendezvousRequest& request) {
  std::vector<std::string> hosts;
  for (const std::string& host : {request.endpoint.value.host, request.master_addr.value, request.local_addr.value}) {
    if (!host.empty()) hosts.push_back(host);
  }
  return hosts;
}

std::optional<Endpoint> endpoint_of_others(const RendezvousRequest& request) {
  const bool holds_its_own = request.backend.value != RendezvousBackend::kC10d || request.is_host.value_or(true);
  if (holds_its_own || request.endpoint.value.host.empty()) return std::nullopt;
  return Endpoint{request.endpoint.value.host, port_of(request)};
}

}  // namespace lrun::launcher
