#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "runtime/collectives/common/failure.h"
#include "runtime/collectives/common/perform.h"

namespace lrun::detail {

/// One posted operation of this rank.
struct Task {
  Task(Post posted, std::uint64_t number) : post(std::move(posted)), sequence(number) {}

  Post post;  ///< Used by the thread that performs it; its tensors are dropped when it is done.
  const std::uint64_t sequence;
  std::atomic<bool> done{false};
  std::optional<Failure> failure;  ///< Written before `done`.
};

/// The operations of one rank, performed one after the other in the order of posting. A separate thread performs them
/// while the poster computes. If the poster waits and the thread has not begun, the poster performs the operation
/// itself, which saves two switches of threads.
///
/// Threads  post() and finish() on any thread.
class WorkQueue {
 public:
  /// \param perform  performs an operation; `patient`: a caller waits for it. Throws nothing.
  using Perform = std::function<std::optional<Failure>(Post& post, std::uint64_t sequence, bool patient)>;

  explicit WorkQueue(Perform perform) : perform_(std::move(perform)) {}
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;
  /// Waits for the operation that has begun; the others fail.
  ~WorkQueue();

  /// \throws std::system_error  the machine gives no thread; nothing is posted.
  /// \param in_background  begin at once on the thread of the queue; otherwise finish() follows at once.
  std::shared_ptr<Task> post(Post post, bool in_background);
  /// Returns when the task is done, with its failure if it has one.
  std::optional<Failure> finish(Task& task);
  /// Whether everything posted so far is done.
  [[nodiscard]] bool idle();

 private:
  void serve();
  void perform_front(std::unique_lock<std::mutex>& lock, bool patient);

  const Perform perform_;
  std::mutex mutex_;
  std::condition_variable work_;      // for the thread: something to do, or stop
  std::condition_variable finished_;  // for finish(): the performing thread is done
  std::deque<std::shared_ptr<Task>> pending_;
  std::uint64_t sequence_ = 0;
  bool performing_ = false;
  bool stopping_ = false;
  std::thread thread_;  // started by the first post in the background
};

}  // namespace lrun::detail
