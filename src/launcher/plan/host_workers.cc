// The number of workers on each host of a list, where options count workers, too. The hosts and a LaunchRequest come
// in, the hosts that are used go out. host_place and multihost call it.
#include "plan/host_workers.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "base/user_error.h"
#include "plan/host_place.h"
#include "plan/personality.h"

namespace lrun::launcher {
namespace {

int total_slots(const std::vector<Host>& hosts) {
  int total = 0;
  for (const Host& host : hosts) total += host.slots;
  return total;
}

/// -n and -np of mpirun and horovodrun are totals over all hosts.
bool is_total(const Setting<DeviceRequest>& setting) {
  return setting.origin.starts_with("-n") || setting.origin == "--num-proc";
}

bool can_be_shared_out(std::optional<int> number) { return number && *number >= 1 && *number <= kMostSlots; }

/// Fills the hosts in their order, until all workers have a place.
std::vector<Host> filled(std::vector<Host> hosts, int workers) {
  for (Host& host : hosts) {
    const int slots = std::min(host.slots, workers);
    if (!host.devices.empty()) host.devices.resize(static_cast<std::size_t>(slots));
    host.slots = slots;
    workers -= slots;
  }
  std::erase_if(hosts, [](const Host& host) { return host.slots == 0; });
  return hosts;
}

/// Equal parts, and one worker more on the first hosts where it does not come out even.
std::vector<Host> shared_out(std::vector<Host> hosts, int workers) {
  const int count = static_cast<int>(hosts.size());
  for (int i = 0; i < count; ++i) hosts[static_cast<std::size_t>(i)].slots = workers / count + (i < workers % count);
  std::erase_if(hosts, [](const Host& host) { return host.slots == 0; });
  return hosts;
}

std::vector<Host> with_slots(std::vector<Host> hosts, int each) {
  for (Host& host : hosts) host.slots = each;
  return hosts;
}

/// The list with `workers` in all, for hints.
std::string list_of(const std::vector<Host>& hosts, int workers) {
  return text_of(workers < total_slots(hosts) ? filled(hosts, workers) : shared_out(hosts, workers));
}

bool all_have(const std::vector<Host>& hosts, std::optional<int> slots) {
  return std::all_of(hosts.begin(), hosts.end(), [&](const Host& host) { return host.slots == slots; });
}

[[noreturn]] void refuse_more_than_all(const Setting<DeviceRequest>& asked, const LaunchRequest& request,
                                       const std::vector<Host>& hosts, int number, const std::string& why) {
  throw UserError(fmt::format("'{}' is more than the {} workers that the hosts of '{}' have in all{}",
                              as_written(asked), total_slots(hosts), hosts_as_written(request), why),
                  fmt::format("write '-H {}'", list_of(hosts, number)));
}

/// Users of mpirun mean all hosts, users of torchrun each.
[[noreturn]] void refuse_two_meanings(const Setting<DeviceRequest>& asked, const LaunchRequest& request,
                                      const std::vector<Host>& hosts, int number) {
  throw UserError(fmt::format("'{}' with '{}' could mean each host, or all hosts in total", as_written(asked),
                              hosts_as_written(request)),
                  fmt::format("write '--devices {}' for {} on each host, or '-H {}' for {} in total", number, number,
                              list_of(hosts, number), number));
}

/// The list has numbers of workers, and an option has one, too.
void check_beside_slots(const Setting<DeviceRequest>& setting, const LaunchRequest& request,
                        const std::vector<Host>& hosts) {
  if (!setting.given()) return;
  const auto number = setting.value.number();
  const int total = total_slots(hosts);
  const bool of_all = is_total(setting);
  const bool each = all_have(hosts, number);
  if (of_all ? number == total : each) return;
  const std::string written = hosts_as_written(request);
  if (!can_be_shared_out(number)) {
    throw UserError(fmt::format("'{}' and '{}' both say how many workers a host has", as_written(setting), written),
                    fmt::format("leave '{}' out", setting.origin));
  }
  if (of_all && each) refuse_two_meanings(setting, request, hosts, *number);
  throw UserError(fmt::format("'{}' and '{}' contradict each other: the hosts have {} workers in all",
                              as_written(setting), written, total),
                  fmt::format("leave '{}' out, or write '-H {}'", setting.origin,
                              of_all ? list_of(hosts, *number) : text_of(with_slots(hosts, *number))));
}

/// The list has no numbers of workers.
void check_beside_names(const Setting<DeviceRequest>& setting, const LaunchRequest& request,
                        const std::vector<Host>& hosts) {
  const auto number = setting.value.number();
  if (!is_total(setting) || hosts.size() == 1 || !can_be_shared_out(number)) return;
  refuse_two_meanings(setting, request, hosts, *number);
}

std::vector<Host> used_by_deepspeed(std::vector<Host> hosts, const LaunchRequest& request) {
  const Setting<int>& nodes = request.num_nodes;
  const bool fewer = nodes.given() && nodes.value >= 1 && static_cast<std::size_t>(nodes.value) < hosts.size();
  if (fewer) hosts.resize(static_cast<std::size_t>(nodes.value));
  const int each = request.devices.value.number().value_or(0);
  for (Host& host : hosts) {
    if (each >= 1 && each < host.slots && host.devices.empty()) host.slots = each;
  }
  return hosts;
}

std::vector<Host> used_by_horovodrun(std::vector<Host> hosts, const LaunchRequest& request) {
  const Setting<DeviceRequest>& asked = request.nproc_per_node;
  const auto number = asked.value.number();
  if (!is_total(asked) || !can_be_shared_out(number)) return hosts;
  const bool numbered = have_slots(request, hosts);
  if (!numbered && hosts.size() == 1) return hosts;
  if (!numbered) hosts = with_slots(std::move(hosts), 1);
  if (*number > total_slots(hosts)) {
    refuse_more_than_all(asked, request, hosts, *number, numbered ? "" : ", one each because none has a number");
  }
  return filled(std::move(hosts), *number);
}

}  // namespace

bool have_slots(const LaunchRequest& request, const std::vector<Host>& hosts) {
  const auto counted = std::count_if(hosts.begin(), hosts.end(), [](const Host& host) { return host.slots > 0; });
  if (counted == 0) return false;
  if (static_cast<std::size_t>(counted) == hosts.size()) return true;
  const auto without = std::find_if(hosts.begin(), hosts.end(), [](const Host& host) { return host.slots == 0; });
  throw UserError(fmt::format("'{}' gives a number of workers for some hosts, but not for '{}'",
                              hosts_as_written(request), without->name),
                  fmt::format("write '{}:1' for one worker", without->name));
}

void check_worker_counts(const LaunchRequest& request, const std::vector<Host>& hosts) {
  const auto check = have_slots(request, hosts) ? check_beside_slots : check_beside_names;
  check(request.devices, request, hosts);
  check(request.nproc_per_node, request, hosts);
}

std::vector<Host> used_hosts(std::vector<Host> hosts, const LaunchRequest& request) {
  if (request.strategy.value == Strategy::kDeepspeed) hosts = used_by_deepspeed(std::move(hosts), request);
  if (personality_of(request.compat).processes_of_all_hosts) hosts = used_by_horovodrun(std::move(hosts), request);
  return hosts;
}

void refuse_total_of_unnamed_nodes(const LaunchRequest& request) {
  const Setting<DeviceRequest>& asked = request.nproc_per_node;
  const auto number = asked.value.number();
  const bool of_all = personality_of(request.compat).processes_of_all_hosts && is_total(asked);
  if (!of_all || !number || request.num_nodes.value <= 1) return;
  throw UserError(
      fmt::format("'{}' of horovodrun is a total over all nodes, and '{} {}' does not name the other nodes",
                  as_written(asked), request.num_nodes.origin, request.num_nodes.value),
      fmt::format("write '--devices {}' for {} on each node, or name them with '-H a:4,b:4'", *number, *number));
}

}  // namespace lrun::launcher
