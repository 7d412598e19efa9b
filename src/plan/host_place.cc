#include "plan/host_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/user_error.h"
#include "base/whole_number.h"
#include "plan/device_request.h"

namespace lrun {
namespace {

template <class T>
void refuse_beside_hosts(const Setting<T>& setting, const LaunchRequest& request, const std::string& why) {
  if (!setting.given()) return;
  throw UserError(fmt::format("'{}' and '{}' do not go together: {}", setting.origin, hosts_as_written(request), why),
                  fmt::format("leave '{}' out", setting.origin));
}

/// \param hosts  how many
void refuse_spares(const LaunchRequest& request, std::size_t hosts) {
  if (!request.spares.given()) return;
  const std::size_t least = hosts - std::min(hosts - 1, static_cast<std::size_t>(request.spares.value));
  throw UserError(
      fmt::format("'{} {}' and '{}' do not go together: all hosts that you name take part", request.spares.origin,
                  request.spares.value, hosts_as_written(request)),
      hosts == 1
          ? fmt::format("leave '{}' out", request.spares.origin)
          : fmt::format("write '--num_nodes {}:{}': the run then goes on without a host that is lost", least, hosts));
}

void check_others(const LaunchRequest& request) {
  const RendezvousRequest& rendezvous = request.rendezvous;
  refuse_beside_hosts(rendezvous.endpoint, request, "the launchers meet on the first host");
  refuse_beside_hosts(rendezvous.node_rank, request, "a node's rank is its place among the hosts");
  refuse_beside_hosts(rendezvous.local_addr, request, "it would be the same on all hosts");
  refuse_beside_hosts(request.setup.debug_rank, request, "a debugger needs the terminal of its host");
  if (request.standalone) {
    throw UserError(fmt::format("'--standalone' and '{}' do not go together", hosts_as_written(request)),
                    "leave one of them out");
  }
  if (request.standard_input) {
    throw UserError(
        fmt::format("'--stdin' and '{}' do not go together: rank 0 may be on another host", hosts_as_written(request)),
        "let rank 0 read a file instead");
  }
}

void check_nodes(const LaunchRequest& request, const std::vector<Host>& hosts) {
  const Setting<int>& asked = request.num_nodes;
  const auto count = static_cast<int>(hosts.size());
  if (!asked.given() || asked.value == count) return;
  const bool fewer = asked.value >= 1 && asked.value < count;
  const std::vector<Host> first(hosts.begin(), hosts.begin() + (fewer ? asked.value : 0));
  throw UserError(fmt::format("'{} {}': '{}' names {} {}", asked.origin, asked.value, hosts_as_written(request), count,
                              count == 1 ? "host" : "hosts"),
                  fewer ? fmt::format("leave '{}' out, or write '-H {}'", asked.origin, in_words(first))
                        : fmt::format("leave '{}' out, or name as many hosts", asked.origin));
}

int total_slots(const std::vector<Host>& hosts) {
  int total = 0;
  for (const Host& host : hosts) total += host.slots;
  return total;
}

/// mpirun's and horovodrun's -n and -np are of all hosts together.
bool is_total(const Setting<std::string>& setting) {
  return setting.origin.starts_with("-n") || setting.origin == "--num-proc";
}

/// The corrected list where the first hosts get as many workers as they may have, until all have one.
std::string filled(std::vector<Host> hosts, int workers) {
  for (Host& host : hosts) {
    host.slots = std::min(host.slots, workers);
    workers -= host.slots;
  }
  std::erase_if(hosts, [](const Host& host) { return host.slots == 0; });
  return in_words(hosts);
}

/// The corrected list where every host gets `each` workers.
std::string with_slots(std::vector<Host> hosts, int each) {
  for (Host& host : hosts) host.slots = each;
  return in_words(hosts);
}

/// A number beside hosts with numbers of their own: that of each of them or of all together.
void check_count(const Setting<std::string>& setting, const LaunchRequest& request, const std::vector<Host>& hosts) {
  if (!setting.given()) return;
  const auto number = whole_number<int>(setting.value);
  const int total = total_slots(hosts);
  if (number && *number == total && is_total(setting)) return;
  const bool each = std::all_of(hosts.begin(), hosts.end(), [&](const Host& host) { return host.slots == number; });
  if (each) return;
  const std::string written = hosts_as_written(request);
  if (!number || *number < 1 || *number > kMostSlots) {
    throw UserError(fmt::format("'{}' and '{}' both say how many workers a host has", as_written(setting), written),
                    fmt::format("leave '{}' out", setting.origin));
  }
  throw UserError(
      fmt::format("'{}' and '{}' contradict each other: the hosts have {} workers in all", as_written(setting), written,
                  total),
      fmt::format("leave '{}' out, or write '-H {}'", setting.origin,
                  is_total(setting) && *number < total ? filled(hosts, *number) : with_slots(hosts, *number)));
}

/// All hosts have a number, or none has.
bool have_slots(const LaunchRequest& request, const std::vector<Host>& hosts) {
  const auto counted = std::count_if(hosts.begin(), hosts.end(), [](const Host& host) { return host.slots > 0; });
  if (counted == 0) return false;
  if (static_cast<std::size_t>(counted) == hosts.size()) return true;
  const auto without = std::find_if(hosts.begin(), hosts.end(), [](const Host& host) { return host.slots == 0; });
  throw UserError(fmt::format("'{}' says of some hosts how many workers they have, and not of '{}'",
                              hosts_as_written(request), without->name),
                  fmt::format("write '{}:1' for one worker", without->name));
}

}  // namespace

bool names_hosts(const LaunchRequest& request) { return request.hosts.given() || request.hostfile.given(); }

std::string hosts_as_written(const LaunchRequest& request) {
  return as_written(request.hosts.given() ? request.hosts : request.hostfile);
}

std::vector<Host> as_deepspeed_counts(std::vector<Host> hosts, const LaunchRequest& request) {
  if (request.strategy.value != "deepspeed") return hosts;
  const Setting<int>& nodes = request.num_nodes;
  const bool fewer = nodes.given() && nodes.value >= 1 && static_cast<std::size_t>(nodes.value) < hosts.size();
  if (fewer) hosts.resize(static_cast<std::size_t>(nodes.value));
  const int each = request.devices.given() ? whole_number<int>(request.devices.value).value_or(0) : 0;
  for (Host& host : hosts) {
    if (each >= 1 && each < host.slots && host.devices.empty()) host.slots = each;
  }
  return hosts;
}

std::string devices_of(const Host& host) {
  if (!host.devices.empty()) return host.devices;
  return host.slots > 0 ? std::to_string(host.slots) : std::string();
}

LaunchRequest placed_on_hosts(LaunchRequest request, const std::vector<Host>& hosts) {
  check_others(request);
  refuse_spares(request, hosts.size());
  check_nodes(request, hosts);
  if (have_slots(request, hosts)) {
    check_count(request.devices, request, hosts);
    check_count(request.nproc_per_node, request, hosts);
    request.devices = {};
    request.nproc_per_node = {};
  }
  if (!request.num_nodes.given()) {
    const Setting<std::string>& named = request.hosts.given() ? request.hosts : request.hostfile;
    request.num_nodes = {static_cast<int>(hosts.size()), named.source, named.origin};
  }
  return request;
}

Allocation allocation_of_hosts(const LaunchRequest& request, const std::vector<Host>& hosts,
                               const AllocatedNode& here) {
  const std::string origin = request.hosts.given() ? request.hosts.origin : request.hostfile.value;
  Allocation allocation{{}, hosts_as_written(request), "the user names the hosts"};
  for (const Host& host : hosts) {
    AllocatedNode node = here;
    node.name = host.name;
    node.devices = devices_of(host);
    node.devices_origin = fmt::format("{}, {}", origin, host.name);
    allocation.nodes.push_back(std::move(node));
  }
  return allocation;
}

}  // namespace lrun
