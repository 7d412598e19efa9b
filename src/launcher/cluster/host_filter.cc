// Applies --include and --exclude to a list of hosts. multihost/named_hosts calls it once the hosts are known; the
// result has the hosts in their old order.
#include "cluster/host_filter.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/nearest.h"
#include "base/split.h"
#include "base/user_error.h"
#include "base/whole_number.h"

namespace lrun::launcher {
namespace {

/// One host of a selection. Without slots all its devices are meant.
struct Selected {
  std::string name;
  std::vector<int> slots;
};

constexpr const char* kGrammar = "write 'a@b:0,2': all of host a, and the devices 0 and 2 of host b";

std::vector<int> slot_list_in(std::string_view text, const std::string& written) {
  std::vector<int> slots;
  for (const std::string& field : fields_of(text)) {
    const std::string_view word = trimmed(field);
    const auto slot = whole_number<int>(word);
    if (!slot || *slot < 0 || *slot >= kMostSlots) {
      throw UserError(fmt::format("'{}': '{}' is not the number of a device", written, word), kGrammar);
    }
    if (std::find(slots.begin(), slots.end(), *slot) != slots.end()) {
      throw UserError(fmt::format("'{}' names device {} twice", written, *slot), kGrammar);
    }
    slots.push_back(*slot);
  }
  return slots;
}

std::vector<Selected> parse(std::string_view text, const std::string& written) {
  std::vector<Selected> all;
  for (bool more = true; more;) {
    more = text.find('@') != std::string_view::npos;
    std::string_view rest = cut(text, '@');
    const bool has_slots = rest.find(':') != std::string_view::npos;
    Selected selected{std::string(trimmed(cut(rest, ':'))), {}};
    if (selected.name.empty()) throw UserError(fmt::format("'{}': a host has no name", written), kGrammar);
    if (has_slots) selected.slots = slot_list_in(rest, written);
    const auto is_same = [&](const Selected& other) { return other.name == selected.name; };
    if (std::any_of(all.begin(), all.end(), is_same)) {
      throw UserError(fmt::format("'{}' names host '{}' twice", written, selected.name), kGrammar);
    }
    all.push_back(std::move(selected));
  }
  return all;
}

void check_is_there(const std::vector<Host>& hosts, const Selected& selected, const std::string& written) {
  std::vector<std::string> names;
  for (const Host& host : hosts) names.push_back(host.name);
  const auto found = std::find(names.begin(), names.end(), selected.name);
  if (found == names.end()) {
    throw choice_error(fmt::format("'{}': '{}' is not one of the hosts", written, selected.name), selected.name, names,
                       "use the names of the list of hosts");
  }
  const Host& host = hosts[static_cast<std::size_t>(found - names.begin())];
  for (const int slot : selected.slots) {
    if (host.slots == 0 || slot < host.slots) continue;
    throw UserError(fmt::format("'{}': host '{}' has {} devices", written, host.name, host.slots),
                    fmt::format("they are numbered from 0 to {}", host.slots - 1));
  }
}

std::vector<Selected> checked(const std::vector<Host>& hosts, std::string_view text, const std::string& written) {
  std::vector<Selected> all = parse(text, written);
  for (const Selected& selected : all) check_is_there(hosts, selected, written);
  return all;
}

Host with_devices(Host host, const std::vector<int>& slots) {
  host.devices = slots;
  host.slots = static_cast<int>(slots.size());
  return host;
}

const Selected* find(const std::vector<Selected>& all, const std::string& name) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Selected& selected) { return selected.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

std::vector<Host> included(const std::vector<Host>& hosts, std::string_view selection, const std::string& written) {
  const std::vector<Selected> all = checked(hosts, selection, written);
  std::vector<Host> left;
  for (const Host& host : hosts) {
    const Selected* const selected = find(all, host.name);
    if (selected != nullptr) left.push_back(selected->slots.empty() ? host : with_devices(host, selected->slots));
  }
  return left;
}

std::vector<Host> excluded(const std::vector<Host>& hosts, std::string_view selection, const std::string& written) {
  const std::vector<Selected> all = checked(hosts, selection, written);
  std::vector<Host> left;
  for (const Host& host : hosts) {
    const Selected* const selected = find(all, host.name);
    if (selected == nullptr) left.push_back(host);
    if (selected == nullptr || selected->slots.empty()) continue;
    if (host.slots == 0) {
      throw UserError(fmt::format("'{}': the number of devices of '{}' is unknown", written, host.name),
                      fmt::format("write '{}:8' where the hosts are listed", host.name));
    }
    std::vector<int> kept;
    for (int slot = 0; slot < host.slots; ++slot) {
      if (std::find(selected->slots.begin(), selected->slots.end(), slot) == selected->slots.end()) {
        kept.push_back(slot);
      }
    }
    if (!kept.empty()) left.push_back(with_devices(host, kept));
  }
  if (left.empty()) throw UserError(fmt::format("'{}' leaves no host", written), "exclude fewer");
  return left;
}

}  // namespace lrun::launcher
