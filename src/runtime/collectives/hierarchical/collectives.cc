#include "runtime/collectives/hierarchical/collectives.h"

#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/collectives/common/queued_collectives.h"
#include "runtime/collectives/gloo/collectives.h"
#include "runtime/collectives/hierarchical/operations.h"
#include "runtime/collectives/shm/collectives.h"

namespace lrun::detail {
namespace {

GroupOptions options_inside(const GroupOptions& options, const HostLayout& layout) {
  const int host = layout.host_of(options.rank);
  GroupOptions inside = options;
  inside.name += "/host" + std::to_string(host);
  inside.rank = layout.place_in_host(options.rank);
  inside.ranks_above = names_of_ranks(layout.ranks[static_cast<std::size_t>(host)], options.ranks_above);
  inside.world_size = static_cast<int>(inside.ranks_above.size());
  return inside;
}

GroupOptions options_between(const GroupOptions& options, const HostLayout& layout) {
  GroupOptions between = options;
  between.name += "/leaders";
  between.rank = layout.host_of(options.rank);
  between.ranks_above = names_of_ranks(layout.leaders(), options.ranks_above);
  between.world_size = layout.hosts();
  return between;
}

/// The ranks of this host; null where there is one only.
std::unique_ptr<PostedCollectives> join_host(const GroupOptions& options, const HostLayout& layout) {
  const GroupOptions inside = options_inside(options, layout);
  return inside.world_size > 1 ? make_shm(inside) : nullptr;
}

/// The hosts' leaders; null on other ranks, and where there is one host only.
std::unique_ptr<PostedCollectives> join_leaders(const GroupOptions& options, const HostLayout& layout) {
  const bool leads = layout.place_in_host(options.rank) == 0;
  return leads && layout.hosts() > 1 ? make_gloo(options_between(options, layout)) : nullptr;
}

class HierarchicalCollectives final : public QueuedCollectives {
 public:
  HierarchicalCollectives(const GroupOptions& options, const HostLayout& layout)
      : QueuedCollectives("shm+gloo", options.rank, options.world_size, options.timeout, options.name_of(options.rank)),
        inside_(join_host(options, layout)),
        between_(join_leaders(options, layout)),
        operations_(layout, options, inside_.get(), between_.get()) {}
  HierarchicalCollectives(const HierarchicalCollectives&) = delete;
  HierarchicalCollectives& operator=(const HierarchicalCollectives&) = delete;
  ~HierarchicalCollectives() override { close(); }

 private:
  void perform(Post& post, std::uint64_t sequence, bool /*patient*/) override { operations_.perform(post, sequence); }

  std::optional<Failure> failure() override {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

  Failure fail_group(const Failure& failure) override {
    {
      const std::lock_guard lock(mutex_);
      if (failure_) return *failure_;
      failure_ = failure;
    }
    if (inside_) inside_->fail(failure);
    if (between_) between_->fail(failure);
    return failure;
  }

  const std::unique_ptr<PostedCollectives> inside_;
  const std::unique_ptr<PostedCollectives> between_;
  HierarchicalOperations operations_;
  std::mutex mutex_;
  std::optional<Failure> failure_;
};

}  // namespace

std::unique_ptr<PostedCollectives> make_hierarchical(const GroupOptions& options, const HostLayout& layout) {
  return std::make_unique<HierarchicalCollectives>(options, layout);
}

}  // namespace lrun::detail
