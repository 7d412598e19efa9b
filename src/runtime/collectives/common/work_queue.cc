#include "runtime/collectives/common/work_queue.h"

#include <pthread.h>

#include <utility>

#include "runtime/collectives/common/background_thread.h"

namespace lrun::detail {

WorkQueue::~WorkQueue() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const std::shared_ptr<Task>& task : pending_) {
      task->failure = Failure{Failure::Kind::kPeerLost, "this rank has left the group"};
      task->done.store(true, std::memory_order_release);
    }
    pending_.clear();
  }
  work_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::shared_ptr<Task> WorkQueue::post(Post post, bool in_background) {
  std::shared_ptr<Task> task;
  {
    const std::lock_guard lock(mutex_);
    // First, for it may throw: nothing is posted then.
    if (in_background && !thread_.joinable()) thread_ = start_background_thread([this] { serve(); });
    task = std::make_shared<Task>(std::move(post), sequence_ + 1);
    pending_.push_back(task);
    ++sequence_;
  }
  if (in_background) work_.notify_one();
  return task;
}

std::optional<Failure> WorkQueue::finish(Task& task) {
  if (!task.done.load(std::memory_order_acquire)) {
    std::unique_lock lock(mutex_);
    while (!task.done.load(std::memory_order_relaxed)) {
      if (performing_ || pending_.empty()) {
        finished_.wait(lock);  // ends: every operation has a deadline
      } else {
        perform_front(lock, true);
      }
    }
    if (!pending_.empty()) work_.notify_one();
  }
  return task.failure;
}

bool WorkQueue::idle() {
  const std::lock_guard lock(mutex_);
  return !performing_ && pending_.empty();
}

void WorkQueue::serve() {
  ::pthread_setname_np(::pthread_self(), "lrun-collective");
  std::unique_lock lock(mutex_);
  for (;;) {
    work_.wait(lock, [this] { return stopping_ || (!performing_ && !pending_.empty()); });
    if (stopping_) return;
    perform_front(lock, false);
  }
}

void WorkQueue::perform_front(std::unique_lock<std::mutex>& lock, bool patient) {
  const std::shared_ptr<Task> task = std::move(pending_.front());
  pending_.pop_front();
  performing_ = true;
  lock.unlock();
  task->failure = perform_(task->post, task->sequence, patient);
  task->post.input.reset();
  lock.lock();
  performing_ = false;
  task->done.store(true, std::memory_order_release);
  finished_.notify_all();
}

}  // namespace lrun::detail
