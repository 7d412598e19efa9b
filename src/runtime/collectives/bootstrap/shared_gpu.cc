#include "runtime/collectives/bootstrap/shared_gpu.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "runtime/collectives/common/failure.h"

namespace lrun::detail {

std::string describe_shared_gpu(const std::vector<GpuOfRank>& gpus, const GroupOptions& options) {
  std::map<std::tuple<std::string, std::string>, std::vector<int>> users;
  for (std::size_t rank = 0; rank < gpus.size(); ++rank) {
    if (gpus[rank].bus_id.empty()) continue;
    users[{gpus[rank].host, gpus[rank].bus_id}].push_back(options.name_of(static_cast<int>(rank)));
  }
  const auto first = std::ranges::find_if(gpus, [&](const GpuOfRank& gpu) {
    const auto found = users.find({gpu.host, gpu.bus_id});
    return found != users.end() && found->second.size() > 1;
  });
  if (first == gpus.end()) return {};
  return "backend 'nccl' needs a GPU for each rank, and " + name_ranks(users[{first->host, first->bus_id}]) +
         " share one (PCI address " + first->bus_id + "): start fewer ranks on that host, or use backend 'gloo'";
}

}  // namespace lrun::detail
