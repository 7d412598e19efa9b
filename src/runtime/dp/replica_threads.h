#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace at {
class ThreadLocalState;
}

namespace lrun::detail {

/// Kept threads: one for each index but 0, which runs in the caller's.
///
/// Threads  run() from one thread at a time, the one that made this.
class ReplicaThreads {
 public:
  /// LibTorch's number of intra-op threads becomes the caller's in all of them.
  explicit ReplicaThreads(std::size_t count);
  ReplicaThreads(const ReplicaThreads&) = delete;
  ReplicaThreads& operator=(const ReplicaThreads&) = delete;
  ~ReplicaThreads();

  [[nodiscard]] std::size_t count() const { return threads_.size() + 1; }

  /// Whether the calling thread is within the work of a run(), of whatever ReplicaThreads.
  [[nodiscard]] static bool are_running_this();

  /// Calls work(0) … work(parts − 1) at the same time, with the caller's thread-local state (grad mode, autocast, …).
  /// Returns when all have ended: the exception of each, null for none. \pre parts ≤ count()
  [[nodiscard]] std::vector<std::exception_ptr> run(std::size_t parts, const std::function<void(std::size_t)>& work);

 private:
  struct Round {
    std::size_t parts = 0;
    const std::function<void(std::size_t)>* work = nullptr;
    const at::ThreadLocalState* state = nullptr;
    std::vector<std::exception_ptr>* failures = nullptr;
  };

  void serve(std::size_t index, int intra_op_threads);

  std::mutex mutex_;
  std::condition_variable begun_;
  std::condition_variable ended_;
  std::uint64_t number_ = 0;  // of the round
  Round round_;
  std::size_t running_ = 0;
  bool stops_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace lrun::detail
