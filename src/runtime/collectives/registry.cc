#include "runtime/collectives/registry.h"

#include <lrun/error.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "base/nearest.h"
#include "runtime/collectives/cuda_library.h"
#include "runtime/collectives/gloo/collectives.h"
#include "runtime/collectives/hierarchical/collectives.h"
#include "runtime/collectives/hierarchical/host_layout.h"
#include "runtime/collectives/shm/collectives.h"
#include "runtime/collectives/single.h"

namespace lrun::detail {
namespace {

using Maker = std::unique_ptr<Collectives> (*)(const GroupOptions& options);

std::unique_ptr<Collectives> make_single_checked(const GroupOptions& options) {
  if (options.world_size == 1) return make_single(options.timeout);
  throw Unsupported("backend 'single' is for a world of one, this one has " + std::to_string(options.world_size) +
                    " ranks: use 'shm'");
}

std::unique_ptr<Collectives> make_best(const GroupOptions& options) {
  if (options.world_size == 1) return make_single(options.timeout);
  const HostLayout layout = meet_hosts(options);
  if (layout.hosts() == 1) return make_shm(options);
  if (layout.most_ranks() == 1) return make_gloo(options);
  return make_hierarchical(options, layout);
}

std::unique_ptr<Collectives> refuse_threads(const GroupOptions& /*options*/) {
  throw Unsupported("backend 'threads' is for ranks that are threads of one program: lrun::make_thread_group()");
}

std::unique_ptr<Collectives> make_shm_group(const GroupOptions& options) { return make_shm(options); }
std::unique_ptr<Collectives> make_gloo_group(const GroupOptions& options) { return make_gloo(options); }

std::unique_ptr<Collectives> make_shm_and_gloo(const GroupOptions& options) {
  return make_hierarchical(options, meet_hosts(options));
}

GroupOptions with_clamped_timeout(GroupOptions options) {
  options.timeout = std::min(options.timeout, kLongestTimeout);
  return options;
}

struct Backend {
  std::string_view name;
  Maker make;
};

constexpr std::array kBackends = {
    Backend{"auto", make_best},         Backend{"single", make_single_checked}, Backend{"shm", make_shm_group},
    Backend{"gloo", make_gloo_group},   Backend{"shm+gloo", make_shm_and_gloo}, Backend{"nccl", make_with_cuda},
    Backend{"threads", refuse_threads},
};

}  // namespace

std::unique_ptr<Collectives> make_collectives(const std::string& name, const GroupOptions& options) {
  if (options.world_size < 1 || options.rank < 0 || options.rank >= options.world_size) {
    throw std::invalid_argument("rank " + std::to_string(options.rank) + " of a world of " +
                                std::to_string(options.world_size));
  }
  if (options.timeout.count() < 1) throw std::invalid_argument("the timeout of a group has to be more than 0 ms");
  std::vector<std::string> names;
  for (const Backend& backend : kBackends) {
    if (backend.name == (name.empty() ? "auto" : name)) return backend.make(with_clamped_timeout(options));
    names.emplace_back(backend.name);
  }
  throw Unsupported("unknown backend '" + name +
                    "': " + nearest_hint(name, names, "it is one of " + join_words(names)));
}

}  // namespace lrun::detail
