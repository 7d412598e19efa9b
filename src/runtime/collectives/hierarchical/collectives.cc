#include "runtime/collectives/hierarchical/collectives.h"

#include <lrun/error.h>

#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "runtime/collectives/common/owner_process.h"
#include "runtime/collectives/common/queued_work.h"
#include "runtime/collectives/common/work_queue.h"
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
  inside.ranks_above = layout.ranks[static_cast<std::size_t>(host)];
  inside.world_size = static_cast<int>(inside.ranks_above.size());
  return inside;
}

GroupOptions options_between(const GroupOptions& options, const HostLayout& layout) {
  GroupOptions between = options;
  between.name += "/leaders";
  between.rank = layout.host_of(options.rank);
  between.ranks_above = layout.leaders();
  between.world_size = layout.hosts();
  return between;
}

/// The failure that a group threw.
std::optional<Failure> failure_of(const std::exception& error) {
  if (dynamic_cast<const CollectiveTimeout*>(&error) != nullptr) return Failure{Failure::Kind::kTimeout, error.what()};
  if (dynamic_cast<const PeerLost*>(&error) != nullptr) return Failure{Failure::Kind::kPeerLost, error.what()};
  if (dynamic_cast<const CollectiveMismatch*>(&error) != nullptr) {
    return Failure{Failure::Kind::kMismatch, error.what()};
  }
  if (dynamic_cast<const Error*>(&error) != nullptr) return Failure{Failure::Kind::kOther, error.what()};
  return std::nullopt;
}

class HierarchicalCollectives final : public PostedCollectives {
 public:
  HierarchicalCollectives(const GroupOptions& options, const HostLayout& layout)
      : options_(options),
        inside_(layout.ranks[static_cast<std::size_t>(layout.host_of(options.rank))].size() > 1
                    ? make_shm(options_inside(options, layout))
                    : nullptr),
        between_(layout.hosts() > 1 && layout.place_in_host(options.rank) == 0
                     ? make_gloo(options_between(options, layout))
                     : nullptr),
        operations_(layout, options.rank, options.world_size, inside_.get(), between_.get()),
        queue_(std::make_unique<WorkQueue>(
            [this](Post& post, std::uint64_t sequence, bool /*patient*/) { return perform(post, sequence); })) {}

  HierarchicalCollectives(const HierarchicalCollectives&) = delete;
  HierarchicalCollectives& operator=(const HierarchicalCollectives&) = delete;

  ~HierarchicalCollectives() override {
    if (!owner_.is_this()) {
      static_cast<void>(queue_.release());  // its thread is the parent's
      return;
    }
    if (!queue_->idle()) {
      abort("rank " + std::to_string(options_.rank) + " left the group while operations were in flight");
    }
  }

  [[nodiscard]] int rank() const override { return options_.rank; }
  [[nodiscard]] int world_size() const override { return options_.world_size; }
  [[nodiscard]] std::string name() const override { return "shm+gloo"; }
  [[nodiscard]] std::chrono::milliseconds timeout() const override { return options_.timeout; }

  at::Tensor allocate_bucket(std::int64_t count, at::ScalarType dtype) override {
    return finish({allocate_bucket_call(count, dtype), {}, {}});
  }

  Failure fail(const Failure& failure) override {
    owner_.require("the group");
    {
      const std::lock_guard lock(mutex_);
      if (failure_) return *failure_;
      failure_ = failure;
    }
    if (inside_) inside_->fail(failure);
    if (between_) between_->fail(failure);
    return failure;
  }

  std::unique_ptr<CollectiveWork> start(Post post) override {
    require_usable();
    return start_queued(*queue_, std::move(post), owner_);
  }

  at::Tensor finish(Post post) override {
    require_usable();
    return finish_queued(*queue_, std::move(post));
  }

 private:
  void require_usable() {
    owner_.require("the group");
    const std::lock_guard lock(mutex_);
    if (failure_) failure_->raise();
  }

  // The edge where errors become values: the thread of the queue has nobody to throw to.
  std::optional<Failure> perform(Post& post, std::uint64_t sequence) {
    try {
      require_usable();
      operations_.perform(post, sequence);
      return std::nullopt;
    } catch (const std::exception& error) {
      const auto known = failure_of(error);
      return fail(known ? *known
                        : Failure{Failure::Kind::kOther, "rank " + std::to_string(options_.rank) + ": " +
                                                             name_call(post.call.operation, sequence) + ": " +
                                                             error.what()});
    }
  }

  const OwnerProcess owner_;
  const GroupOptions options_;
  const std::unique_ptr<PostedCollectives> inside_;
  const std::unique_ptr<PostedCollectives> between_;
  HierarchicalOperations operations_;
  std::mutex mutex_;
  std::optional<Failure> failure_;
  std::unique_ptr<WorkQueue> queue_;  // last: its thread uses the others
};

}  // namespace

std::unique_ptr<PostedCollectives> make_hierarchical(const GroupOptions& options, const HostLayout& layout) {
  return std::make_unique<HierarchicalCollectives>(options, layout);
}

}  // namespace lrun::detail
