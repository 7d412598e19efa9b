// Texts of cluster managers: host files, pairs of hosts and slots, a pod's /etc/hosts, JSON.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "cluster/cloud_job.h"
#include "cluster/host_lists.h"
#include "cluster/kubernetes_job.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto& hosts : {lrun::launcher::hosts_in_lines(text), lrun::launcher::hosts_in_pairs(text)}) {
    if (hosts.size() > lrun::launcher::kMostListedHosts) __builtin_trap();
    for (const std::string& host : hosts) {
      if (host.empty() || host.find_first_of(" \t\r\n") != std::string::npos) __builtin_trap();
    }
  }
  const std::string first = lrun::launcher::first_pod_of(text, "train-2", 2);
  if (!first.empty() && !first.starts_with("train-0.")) __builtin_trap();
  for (const auto& place : {lrun::launcher::parse_resource_config(text), lrun::launcher::parse_cluster_spec(text)}) {
    if (!place) continue;
    if (place->place < 0 || static_cast<std::size_t>(place->place) >= place->hosts.size()) __builtin_trap();
    if (place->port < 0 || place->port > 65'535) __builtin_trap();
  }
  return 0;
}
