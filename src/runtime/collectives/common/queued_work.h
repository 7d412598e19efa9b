#pragma once

#include <lrun/collectives.h>

#include <memory>
#include <utility>

#include "runtime/collectives/common/owner_process.h"
#include "runtime/collectives/common/work_queue.h"

namespace lrun::detail {

/// What a user holds of an operation in a WorkQueue.
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

/// Posts an operation that its caller waits for by itself.
inline std::unique_ptr<CollectiveWork> start_queued(WorkQueue& queue, Post post, OwnerProcess owner) {
  return std::make_unique<QueuedWork>(queue, queue.post(std::move(post), true), owner);
}

/// Posts an operation and waits for it. \return its output. \throws the failure of the group.
inline at::Tensor finish_queued(WorkQueue& queue, Post post) {
  const std::shared_ptr<Task> task = queue.post(std::move(post), false);
  if (const auto failure = queue.finish(*task)) failure->raise();
  return std::move(task->post.output);
}

}  // namespace lrun::detail
