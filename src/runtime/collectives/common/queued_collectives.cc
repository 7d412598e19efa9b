// In: checked operations of the training thread. Out: the same to a backend, one after the other, on the queue's thread
// or on the caller's. Derived from by shm, gloo and shm+gloo.
#include "runtime/collectives/common/queued_collectives.h"

#include <exception>
#include <utility>

namespace lrun::detail {
namespace {

/// The user's handle of an operation in the queue.
class QueuedWork final : public CollectiveWork {
 public:
  QueuedWork(WorkQueue& queue, std::shared_ptr<Task> task, OwnerProcess owner)
      : queue_(queue), task_(std::move(task)), owner_(owner) {}

  [[nodiscard]] bool done() const override { return task_->done.load(std::memory_order_acquire); }
  void wait() override {
    // A task that is done needs no queue: the group may have ended since.
    if (!done()) owner_.require("the operation");
    const auto failure = done() ? task_->failure : queue_.finish(*task_);
    if (failure) failure->raise();
  }

 private:
  WorkQueue& queue_;
  std::shared_ptr<Task> task_;  // shared: with the queue, until it is done
  const OwnerProcess owner_;
};

}  // namespace

QueuedCollectives::QueuedCollectives(std::string name, int rank, int world_size, std::chrono::milliseconds timeout,
                                     int shown_rank)
    : PostedCollectives(std::move(name), rank, world_size, timeout),
      shown_rank_(shown_rank),
      queue_(std::make_unique<WorkQueue>([this](Post& post, std::uint64_t sequence, bool patient) {
        return try_to_perform(post, sequence, patient);
      })) {}

QueuedCollectives::~QueuedCollectives() = default;

bool QueuedCollectives::close() {
  if (!owner_.is_this()) {
    // The queue's thread is not here: neither joining it nor destroying the condition on which it waits would return.
    static_cast<void>(queue_.release());
    return false;
  }
  if (!queue_->idle()) {
    abort("rank " + std::to_string(shown_rank_) + " left the group while operations were in flight");
  }
  queue_.reset();
  return true;
}

std::unique_ptr<CollectiveWork> QueuedCollectives::start(Post post) {
  require_usable();
  return std::make_unique<QueuedWork>(*queue_, queue_->post(std::move(post), true), owner_);
}

at::Tensor QueuedCollectives::finish(Post post) {
  require_usable();
  const std::shared_ptr<Task> task = queue_->post(std::move(post), false);
  if (const auto failure = queue_->finish(*task)) failure->raise();
  return std::move(task->post.output);
}

Failure QueuedCollectives::fail(const Failure& failure) {
  owner_.require("the group");
  return fail_group(failure);
}

void QueuedCollectives::require_usable() {
  owner_.require("the group");
  if (const auto failed = failure()) failed->raise();
}

/// Errors become values here: the queue's thread has no caller that could catch them.
std::optional<Failure> QueuedCollectives::try_to_perform(Post& post, std::uint64_t sequence, bool patient) {
  try {
    require_usable();
    perform(post, sequence, patient);
    return std::nullopt;
  } catch (const std::exception& error) {
    if (const auto known = failure_of(error)) return fail_group(*known);
    const Part shown = post.shown(sequence);
    return fail_group({Failure::Kind::kOther, "rank " + std::to_string(shown_rank_) + ": " +
                                                  name_call(shown.operation, shown.sequence) + ": " + error.what()});
  }
}

}  // namespace lrun::detail
