// In: a request with --hosts, --hostfile, --include or --exclude. Out: the hosts to run on, or devices of this host.
// Called by main() and start_on_hosts.cc.
#include "multihost/named_hosts.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/appended_file.h"
#include "base/folder_entries.h"
#include "base/nearest.h"
#include "base/split.h"
#include "base/user_error.h"
#include "cli/user_file.h"
#include "cluster/host_filter.h"
#include "cluster/own_names.h"
#include "plan/host_place.h"
#include "plan/host_workers.h"

namespace lrun::launcher {
namespace {

constexpr std::size_t kMostHostfileBytes = std::size_t{8} << 20U;

/// '--hostfile hostfile' for a name near it.
std::string hint_about_hostfile(const std::filesystem::path& path, const std::string& origin) {
  std::vector<std::string> names;
  const std::filesystem::path folder = path.parent_path();
  for (const std::filesystem::directory_entry& entry : first_entries(folder)) {
    std::error_code gone;
    if (entry.is_regular_file(gone)) names.push_back(entry.path().filename().string());
  }
  const auto nearest = nearest_word(path.filename().string(), names);
  if (!nearest || *nearest == path.filename()) return "name a file with a host a line";
  return did_you_mean(as_written(origin, (folder / *nearest).string()));
}

std::vector<Host> hosts_of_file(const std::string& path, const std::string& written, const std::string& origin) {
  const FileText file = read_user_file(path, kMostHostfileBytes);
  if (file.error_number != 0) {
    throw UserError(fmt::format("'{}' cannot be read: {}", written, file_refusal_text(file.error_number)),
                    hint_about_hostfile(path, origin));
  }
  return parse_hostfile(file.text, path);
}

/// 'localhost:0,2': it needs no list of hosts.
bool selects_of_localhost(std::string_view selection) {
  return trimmed(cut(selection, ':')) == "localhost" && selection.find('@') == std::string_view::npos;
}

void check_selection(const LaunchRequest& request) {
  const Setting<std::string>& selection = request.include.given() ? request.include : request.exclude;
  if (!selection.given()) return;
  if (request.include.given() && request.exclude.given()) {
    throw UserError(fmt::format("'{}' and '{}' cannot be combined", request.include.origin, request.exclude.origin),
                    "give one of them");
  }
  if (!names_hosts(request) && !selects_of_localhost(selection.value)) {
    throw UserError(
        fmt::format("'{}' selects hosts, and none are named", selection.origin),
        "name them with '-H a:4,b:4' or '--hostfile FILE', or write 'localhost:0,2' for devices of this one");
  }
}

/// Slurm decides itself where the job runs.
void check_manager(const LaunchRequest& request, const Environment& environment) {
  const auto job = environment.get("SLURM_JOB_ID");
  const bool of_worker = environment.has("LRUN_RUN_ID") || environment.has("TORCHELASTIC_RUN_ID");
  if (!job || of_worker) return;
  const std::string written = hosts_as_written(request);
  throw UserError(fmt::format("'{}' and Slurm job {} (SLURM_JOB_ID) both say which nodes to use", written, *job),
                  fmt::format("leave '{}' out, or write 'env -u SLURM_JOB_ID lrun …'", written));
}

/// '-H hosts.txt'
void refuse_file_as_host(const LaunchRequest& request) {
  if (!request.hosts.given() || request.hosts.value.hosts.size() != 1) return;
  const std::string& name = request.hosts.value.hosts.front().name;
  const bool looks_like_file = name.ends_with(".txt") || name == "hostfile" || name == "hosts";
  std::error_code error;
  if (!looks_like_file || !std::filesystem::is_regular_file(name, error)) return;
  throw UserError(
      fmt::format("'{}' names a file, and '{}' takes hosts", as_written(request.hosts), request.hosts.origin),
      fmt::format("write '--hostfile {}'", name));
}

bool may_be_here(const Host& host) {
  char own[HOST_NAME_MAX + 1] = {};
  if (::gethostname(own, sizeof own - 1) != 0) return false;
  const bool is_numeric =
      host.name.find_first_not_of("0123456789.") == std::string::npos || host.name.find(':') != std::string::npos;
  const auto first_label = [](std::string_view name) { return name.substr(0, name.find('.')); };
  return is_numeric || host.name == "localhost" || first_label(host.name) == first_label(own);
}

/// The hint where this host has several names.
std::string with_all_workers(const std::vector<Host>& hosts, const std::vector<bool>& here) {
  int workers = 0;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (!here[i]) continue;
    if (hosts[i].slots <= 0) return "name it once";
    workers += hosts[i].slots;
  }
  return fmt::format("name it once, with all its workers: 'localhost:{}'", workers);
}

/// Two nodes on this machine would take the same devices.
void refuse_one_twice(const std::vector<Host>& hosts, const std::vector<bool>& here) {
  const auto first = std::find(here.begin(), here.end(), true);
  if (first == here.end()) return;
  const auto second = std::find(first + 1, here.end(), true);
  if (second == here.end()) return;
  throw UserError(
      fmt::format("'{}' and '{}' are both this host", hosts[static_cast<std::size_t>(first - here.begin())].name,
                  hosts[static_cast<std::size_t>(second - here.begin())].name),
      with_all_workers(hosts, here));
}

}  // namespace

std::vector<Host> named_hosts(const LaunchRequest& request, const Environment& environment) {
  check_selection(request);
  if (!names_hosts(request)) {
    refuse_total_of_unnamed_nodes(request);
    return {};
  }
  check_manager(request, environment);
  if (request.hosts.given() && request.hostfile.given()) {
    throw UserError(
        fmt::format("'{}' and '{}' both name the hosts", as_written(request.hosts), as_written(request.hostfile)),
        "give one of them");
  }
  const std::string written = hosts_as_written(request);
  refuse_file_as_host(request);
  std::vector<Host> hosts = request.hosts.given()
                                ? request.hosts.value.hosts
                                : hosts_of_file(request.hostfile.value, written, request.hostfile.origin);
  if (request.include.given()) hosts = included(hosts, request.include.value, as_written(request.include));
  if (request.exclude.given()) hosts = excluded(hosts, request.exclude.value, as_written(request.exclude));
  return used_hosts(std::move(hosts), request);
}

void select_devices_here(const LaunchRequest& request, Allocation& allocation) {
  const Setting<std::string>& selection = request.include.given() ? request.include : request.exclude;
  if (!selection.given()) return;
  for (const Setting<DeviceRequest>* const other : {&request.devices, &request.nproc_per_node}) {
    if (!other->given()) continue;
    throw UserError(
        fmt::format("'{}' and '{}' both say which devices to use", as_written(selection), as_written(*other)),
        "give one of them");
  }
  AllocatedNode& node = allocation.nodes.front();
  if (allocation.nodes.size() > 1 || request.num_nodes.value > 1) {
    throw UserError(fmt::format("'{}' selects devices of this host, and the run is on several", as_written(selection)),
                    "use '--devices' for the same devices on every node");
  }
  const std::vector<Host> here{{.name = "localhost", .slots = static_cast<int>(node.gpus.gpus.size())}};
  const auto selected = request.include.given() ? included : excluded;
  node.devices = devices_of(selected(here, selection.value, as_written(selection)).front());
  node.devices_origin = selection.origin;
}

std::vector<bool> which_are_here(const std::vector<Host>& hosts) {
  std::vector<std::string> names;
  for (const Host& host : hosts) {
    if (host.user.empty() && host.port == 0 && may_be_here(host)) names.push_back(host.name);
  }
  const std::vector<std::string> own = own_names(names);
  std::vector<bool> here;
  for (const Host& host : hosts) {
    const bool plain = host.user.empty() && host.port == 0;
    here.push_back(plain && std::find(own.begin(), own.end(), host.name) != own.end());
  }
  refuse_one_twice(hosts, here);
  return here;
}

}  // namespace lrun::launcher
