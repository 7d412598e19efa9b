// In: the name of a backend and the options of a group. Out: this rank's end of the group, which makes its subgroups
// the same way. Called by the session.
#include "runtime/collectives/registry.h"

#include <lrun/error.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "base/nearest.h"
#include "runtime/collectives/common/group_member.h"
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

/// Disjoint subgroups of one call have different first ranks.
GroupOptions options_of_subgroup(const GroupOptions& options, const std::vector<int>& ranks, std::uint64_t number) {
  GroupOptions part = options;
  part.name += "/" + std::to_string(number) + "." + std::to_string(ranks.front());
  part.rank = static_cast<int>(std::ranges::find(ranks, options.rank) - ranks.begin());
  part.world_size = static_cast<int>(ranks.size());
  part.ranks_above = names_of_ranks(ranks, options.ranks_above);
  return part;
}

std::string backend_of_subgroup(const std::string& backend, int world_size) {
  if (backend == "nccl") return backend;
  if (world_size == 1) return "single";
  return backend == "shm+gloo" ? "auto" : backend;
}

/// Every backend is a GroupMember.
void let_make_subgroups(Collectives& group, const GroupOptions& options) {
  const auto join = [options, backend = group.name()](const std::vector<int>& ranks, std::uint64_t number) {
    const GroupOptions part = options_of_subgroup(options, ranks, number);
    return make_collectives(backend_of_subgroup(backend, part.world_size), part);
  };
  static_cast<GroupMember&>(group).set_subgroup_maker(join);
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
    names.emplace_back(backend.name);
    if (backend.name != (name.empty() ? "auto" : name)) continue;
    auto group = backend.make(with_clamped_timeout(options));
    let_make_subgroups(*group, options);
    return group;
  }
  throw Unsupported("unknown backend '" + name +
                    "': " + nearest_hint(name, names, "it is one of " + join_words(names)));
}

}  // namespace lrun::detail
