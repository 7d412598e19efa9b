#include "runtime/dp/replica_threads.h"

#include <ATen/Parallel.h>
#include <ATen/ThreadLocalState.h>

#include <utility>

#include "runtime/collectives/common/background_thread.h"

namespace lrun::detail {
namespace {

thread_local bool runs_work = false;

class RunsWork {
 public:
  RunsWork() : before_(std::exchange(runs_work, true)) {}
  RunsWork(const RunsWork&) = delete;
  RunsWork& operator=(const RunsWork&) = delete;
  ~RunsWork() { runs_work = before_; }

 private:
  bool before_;
};

std::exception_ptr failure_of(const std::function<void(std::size_t)>& work, std::size_t index) {
  const RunsWork now;
  try {
    work(index);
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace

ReplicaThreads::ReplicaThreads(std::size_t count) {
  const int intra_op_threads = at::get_num_threads();
  for (std::size_t index = 1; index < count; ++index) {
    threads_.push_back(start_background_thread([this, index, intra_op_threads] { serve(index, intra_op_threads); }));
  }
}

ReplicaThreads::~ReplicaThreads() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  begun_.notify_all();
  for (auto& thread : threads_) thread.join();
}

bool ReplicaThreads::are_running_this() { return runs_work; }

std::vector<std::exception_ptr> ReplicaThreads::run(std::size_t parts, const std::function<void(std::size_t)>& work) {
  std::vector<std::exception_ptr> failures(parts);
  const at::ThreadLocalState state;
  {
    const std::lock_guard lock(mutex_);
    round_ = {parts, &work, &state, &failures};
    running_ = parts - 1;
    ++number_;
  }
  if (parts > 1) begun_.notify_all();
  failures[0] = failure_of(work, 0);
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [&] { return running_ == 0; });
  return failures;
}

void ReplicaThreads::serve(std::size_t index, int intra_op_threads) {
  at::set_num_threads(intra_op_threads);
  std::uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    begun_.wait(lock, [&] { return stops_ || number_ != seen; });
    if (stops_) return;
    seen = number_;
    const Round round = round_;
    if (index >= round.parts) continue;
    lock.unlock();
    {
      const at::ThreadLocalStateGuard guard(*round.state);
      (*round.failures)[index] = failure_of(*round.work, index);
    }
    lock.lock();
    if (--running_ == 0) ended_.notify_one();
  }
}

}  // namespace lrun::detail
