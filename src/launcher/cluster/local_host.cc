#include "cluster/local_host.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <system_error>

#include "base/numeric_address.h"
#include "cluster/find_gpus.h"
#include "cluster/network_folder.h"
#include "cluster/own_names.h"
#include "cluster/tpu_chips.h"
#include "cluster/usable_cpus.h"
#include "cluster/visible_gpus.h"

namespace lrun::launcher {
namespace {

/// Without '::1' where the machine cannot listen on it.
std::vector<std::string> names_that_reach_us(const std::vector<std::string>& names) {
  std::vector<std::string> own = own_names(names);
  const auto is_ipv6 = [](const std::string& name) { return loopback_address_of(name) == "::1"; };
  if (std::any_of(own.begin(), own.end(), is_ipv6) && !has_ipv6_loopback()) std::erase_if(own, is_ipv6);
  return own;
}

/// Temporary files are on the node, nearly everywhere. Workers load what they find in such a folder, so nobody else may
/// put anything into it.
void find_local_folder(const Environment& environment, AllocatedNode& node) {
  const std::string temporary = environment.get("TMPDIR").value_or("");
  for (const std::string& place : {temporary, std::string("/tmp")}) {
    if (!place.starts_with('/') || !network_file_system_of(place).empty()) continue;
    const std::string folder = place + "/lrun-caches-" + std::to_string(::geteuid());
    node.local_folder_problem = problem_of_private_folder(folder);
    if (!node.local_folder_problem.empty()) continue;
    node.local_folder = folder;
    return;
  }
}

void look_at_folders(const std::vector<std::string>& folders, const Environment& environment, AllocatedNode& node) {
  for (const std::string& folder : folders) {
    const std::string_view file_system = network_file_system_of(folder);
    if (!file_system.empty()) node.network_folders.emplace(folder, file_system);
  }
  if (!node.network_folders.empty()) find_local_folder(environment, node);
}

}  // namespace

std::string own_host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  if (gethostname(name, sizeof name - 1) != 0) throw std::system_error(errno, std::generic_category(), "gethostname");
  return name;
}

AllocatedNode local_host(const Questions& questions, const Environment& environment) {
  AllocatedNode node;
  node.name = own_host_name();
  node.cpus = questions.cpus ? usable_cpus() : cpus_by_affinity();
  node.is_pod = environment.has("KUBERNETES_SERVICE_HOST");
  node.also_named = names_that_reach_us(questions.names);
  if (questions.gpus) node.gpus = visible_gpus(find_gpus(), environment);
  if (questions.tpus) node.tpus = find_tpu_chips();
  look_at_folders(questions.folders, environment, node);
  if (questions.topology) {
    node.topology = read_topology(allowed_cpus());
    for (Gpu& gpu : node.gpus.gpus) gpu.numa_node = numa_node_of(gpu.pci_address);
  }
  return node;
}

}  // namespace lrun::launcher
