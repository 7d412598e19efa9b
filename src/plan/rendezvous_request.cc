#include "plan/rendezvous_request.h"

#include <algorithm>
#include <charconv>

#include "base/split.h"
#include "base/user_error.h"
#include "plan/launch_plan.h"

namespace lrun {
namespace {

constexpr int kPortOfC10d = 29'400;
constexpr int kMostPort = 65'535;

bool is_host_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char letter) {
    const bool is_letter = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z');
    return is_letter || (letter >= '0' && letter <= '9') || letter == '.' || letter == '-' || letter == '_' ||
           letter == ':';
  });
}

std::optional<int> port_in(std::string_view text) {
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  const bool number = error == std::errc() && end == text.data() + text.size();
  return number && port >= 0 && port <= kMostPort ? std::optional(port) : std::nullopt;
}

bool is_here(const std::string& host, const AllocatedNode& this_host) {
  return std::find(this_host.also_named.begin(), this_host.also_named.end(), host) != this_host.also_named.end();
}

void check_is_here(const std::string& written, const std::string& host, const AllocatedNode& this_host,
                   const std::string& hint) {
  if (host.empty() || is_here(host, this_host)) return;
  throw UserError("'" + written + "': '" + host + "' is not this machine, and this version runs on one machine", hint);
}

std::string as_written(const Endpoint& endpoint) {
  const bool brackets = endpoint.host.find(':') != std::string::npos;
  return (brackets ? "[" + endpoint.host + "]" : endpoint.host) +
         (endpoint.port ? ":" + std::to_string(*endpoint.port) : "");
}

/// '--rdzv-endpoint node0:29400', 'PET_RDZV_ENDPOINT=node0:29400'.
std::string as_written(const std::string& origin, const std::string& value) {
  return origin + (origin.starts_with('-') ? " " : "=") + value;
}

}  // namespace

std::optional<Endpoint> parse_endpoint(std::string_view text) {
  text = trimmed(text, " \t\r\n");
  std::string_view host = text;
  std::optional<std::string_view> port;
  if (const std::size_t colon = text.rfind(':'); colon != std::string_view::npos) {
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

std::vector<std::string> hosts_in(const RendezvousRequest& request) {
  std::vector<std::string> hosts;
  for (const std::string& host : {request.endpoint.value.host, request.master_addr.value, request.local_addr.value}) {
    if (!host.empty()) hosts.push_back(host);
  }
  return hosts;
}

void choose_master(const RendezvousRequest& request, const Setting<std::optional<int>>& master_port,
                   const AllocatedNode& this_host, LaunchPlan& plan) {
  const Endpoint& endpoint = request.endpoint.value;
  const std::string& origin = request.endpoint.origin;
  check_is_here(as_written(origin, as_written(endpoint)), endpoint.host, this_host,
                "leave it out, or write '" + as_written(origin, "localhost:29400") + "'");
  for (const Setting<std::string>* address : {&request.master_addr, &request.local_addr}) {
    check_is_here(as_written(address->origin, address->value), address->value, this_host,
                  "leave it out, or write '" + as_written(address->origin, "127.0.0.1") + "'");
  }
  plan.warnings.insert(plan.warnings.end(), request.warnings.begin(), request.warnings.end());
  const bool c10d = request.backend.value == "c10d";
  if (plan.num_nodes == 1) plan.master_addr = "127.0.0.1";
  int port = master_port.value.value_or(0);
  if (!endpoint.host.empty()) {
    if (!endpoint.port && !c10d) {
      throw UserError("'" + as_written(origin, as_written(endpoint)) + "' has no port",
                      "write '" + as_written(origin, as_written(Endpoint{endpoint.host, 29'500})) +
                          "', or '--master-port 29500' instead");
    }
    const int fixed = port;
    port = endpoint.port.value_or(kPortOfC10d);
    if (fixed != 0 && fixed != port) {  // torchrun drops it without a word
      plan.warnings.push_back("'" + as_written(master_port.origin, std::to_string(fixed)) +
                              "' is not used: the port of '" + as_written(origin, as_written(endpoint)) + "' is " +
                              std::to_string(port));
    }
    plan.any_port_will_do = c10d;
  }
  if (port != 0) plan.master_port = port;
}

}  // namespace lrun
