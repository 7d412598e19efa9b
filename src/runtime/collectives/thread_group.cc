// In: operations of ranks that are threads of one process. Out: their results; the last rank to call performs the
// operation for all. Implements <lrun/thread_group.h>.
#include <lrun/thread_group.h>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/clock.h"
#include "runtime/collectives/bootstrap/group_options.h"
#include "runtime/collectives/common/call.h"
#include "runtime/collectives/common/failure.h"
#include "runtime/collectives/common/perform.h"
#include "runtime/collectives/common/posted_collectives.h"

namespace lrun::detail {
namespace {

/// One operation of the group: the posts of all ranks under its sequence number.
struct Operation {
  explicit Operation(std::uint64_t number, std::size_t world_size) : sequence(number), posts(world_size) {}

  const std::uint64_t sequence;
  std::vector<std::optional<Post>> posts;  ///< Written under the group's mutex until all are there.
  std::size_t arrived = 0;
  bool done = false;
};

/// The shared state of the ranks of a group. A rank's call finds or makes the operation of its sequence number; the
/// last rank to arrive performs it, so there is neither a worker thread nor a second barrier.
class ThreadGroup {
 public:
  ThreadGroup(int world_size, std::chrono::milliseconds timeout, std::vector<int> ranks_above)
      : timeout_(timeout),
        ranks_above_(std::move(ranks_above)),
        left_(static_cast<std::size_t>(world_size)),
        posted_(static_cast<std::size_t>(world_size)) {}

  [[nodiscard]] int world_size() const { return static_cast<int>(left_.size()); }
  [[nodiscard]] std::chrono::milliseconds timeout() const { return timeout_; }

  std::shared_ptr<Operation> post(int rank, Post post);
  void wait(int rank, const Operation& operation);
  [[nodiscard]] bool done(const Operation& operation);
  void leave(int rank) noexcept;
  Failure abort(const Failure& failure);

  /// The same group for each of its ranks. \param number  of the call of subgroup().
  std::shared_ptr<ThreadGroup> subgroup(const std::vector<int>& ranks, std::uint64_t number);

 private:
  struct Subgroup {
    std::shared_ptr<ThreadGroup> group;
    std::size_t joined = 0;
  };

  void perform(Operation& operation);
  void fail(Failure failure);  // with mutex_ held
  [[nodiscard]] std::vector<int> missing(const Operation& operation) const;
  [[nodiscard]] std::string name(int rank) const { return "rank " + std::to_string(name_of_rank(rank, ranks_above_)); }

  const std::chrono::milliseconds timeout_;
  const std::vector<int> ranks_above_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint64_t, std::shared_ptr<Operation>> pending_;  // begun, not yet posted by all
  std::vector<bool> left_;
  std::vector<std::uint64_t> posted_;                            // how many operations each rank posted
  std::map<std::pair<std::uint64_t, int>, Subgroup> subgroups_;  // by number and first rank, until all have joined
  std::optional<Failure> failure_;
};

std::shared_ptr<Operation> ThreadGroup::post(int rank, Post post) {
  const auto index = static_cast<std::size_t>(rank);
  std::shared_ptr<Operation> operation;
  {
    const std::lock_guard lock(mutex_);
    if (failure_) failure_->raise();
    const std::uint64_t sequence = ++posted_[index];
    auto& slot = pending_[sequence];
    if (!slot) slot = std::make_shared<Operation>(sequence, left_.size());
    operation = slot;
    const Call::Operation kind = post.call.operation;
    operation->posts[index] = std::move(post);
    if (++operation->arrived < left_.size()) {
      for (int other : missing(*operation)) {
        if (!left_[static_cast<std::size_t>(other)]) continue;
        fail({Failure::Kind::kPeerLost, name(other) + " left the group before " + name_call(kind, sequence)});
        failure_->raise();
      }
      return operation;
    }
    pending_.erase(sequence);
  }
  perform(*operation);
  return operation;
}

void ThreadGroup::perform(Operation& operation) {
  std::optional<Failure> failure = find_mismatch(operation.posts, operation.sequence, ranks_above_);
  try {
    if (!failure) detail::perform(operation.posts);
  } catch (const std::exception& error) {  // the others wait for this rank
    const Call::Operation kind = operation.posts[0]->call.operation;
    failure = Failure{Failure::Kind::kOther, name_call(kind, operation.sequence) + ": " + error.what()};
  }
  const std::lock_guard lock(mutex_);
  if (failure) fail(std::move(*failure));
  operation.done = !failure.has_value();
  operation.posts.clear();  // the tensors belong to their ranks again
  changed_.notify_all();
}

void ThreadGroup::wait(int rank, const Operation& operation) {
  const SteadyTime deadline = std::chrono::steady_clock::now() + timeout_;
  const auto ended = [&] { return operation.done || failure_; };
  std::unique_lock lock(mutex_);
  if (!changed_.wait_until(lock, deadline, ended)) {
    const std::vector<int> late = missing(operation);
    if (late.empty()) {
      changed_.wait(lock, ended);  // all have come and the last one performs the operation: that ends by itself
    } else {
      const Call& call = operation.posts[static_cast<std::size_t>(rank)]->call;
      fail({Failure::Kind::kTimeout,
            describe_timeout(call.operation, operation.sequence, timeout_, names_of_ranks(late, ranks_above_))});
    }
  }
  if (!operation.done) failure_->raise();
}

bool ThreadGroup::done(const Operation& operation) {
  const std::lock_guard lock(mutex_);
  return operation.done || failure_;
}

void ThreadGroup::leave(int rank) noexcept {
  const auto index = static_cast<std::size_t>(rank);
  const std::lock_guard lock(mutex_);
  left_[index] = true;
  for (const auto& [sequence, operation] : pending_) {
    if (operation->posts[index]) continue;
    const int other = [&posts = operation->posts] {
      int first = 0;
      while (!posts[static_cast<std::size_t>(first)]) ++first;
      return first;
    }();
    const Call::Operation kind = operation->posts[static_cast<std::size_t>(other)]->call.operation;
    fail({Failure::Kind::kPeerLost, name(rank) + " left the group before " + name_call(kind, sequence)});
    return;
  }
}

Failure ThreadGroup::abort(const Failure& failure) {
  const std::lock_guard lock(mutex_);
  fail(failure);
  return *failure_;
}

std::shared_ptr<ThreadGroup> ThreadGroup::subgroup(const std::vector<int>& ranks, std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto [entry, is_new] = subgroups_.try_emplace({number, ranks.front()});
  if (is_new) {
    entry->second.group =
        std::make_shared<ThreadGroup>(static_cast<int>(ranks.size()), timeout_, names_of_ranks(ranks, ranks_above_));
  }
  std::shared_ptr<ThreadGroup> group = entry->second.group;
  if (++entry->second.joined == ranks.size()) subgroups_.erase(entry);
  return group;
}

void ThreadGroup::fail(Failure failure) {
  if (!failure_) failure_ = std::move(failure);
  changed_.notify_all();
}

std::vector<int> ThreadGroup::missing(const Operation& operation) const {
  std::vector<int> ranks;
  for (int rank = 0; rank < world_size(); ++rank) {
    if (!operation.posts[static_cast<std::size_t>(rank)]) ranks.push_back(rank);
  }
  return ranks;
}

class ThreadWork final : public CollectiveWork {
 public:
  ThreadWork(std::shared_ptr<ThreadGroup> group, int rank, std::shared_ptr<Operation> operation)
      : group_(std::move(group)), rank_(rank), operation_(std::move(operation)) {}

  [[nodiscard]] bool done() const override { return group_->done(*operation_); }
  void wait() override { group_->wait(rank_, *operation_); }

 private:
  std::shared_ptr<ThreadGroup> group_;  // shared: see ThreadCollectives
  const int rank_;
  std::shared_ptr<Operation> operation_;  // shared: by the work of every rank
};

class ThreadCollectives final : public PostedCollectives {
 public:
  ThreadCollectives(std::shared_ptr<ThreadGroup> group, int rank)
      : PostedCollectives("threads", rank, group->world_size(), group->timeout()), group_(std::move(group)) {
    set_subgroup_maker([this](const std::vector<int>& ranks, std::uint64_t number) {
      const auto place = std::ranges::find(ranks, this->rank()) - ranks.begin();
      return std::make_unique<ThreadCollectives>(group_->subgroup(ranks, number), static_cast<int>(place));
    });
  }
  ThreadCollectives(const ThreadCollectives&) = delete;
  ThreadCollectives& operator=(const ThreadCollectives&) = delete;
  ~ThreadCollectives() override { group_->leave(rank()); }

  Failure fail(const Failure& failure) override { return group_->abort(failure); }

  std::unique_ptr<CollectiveWork> start(Post post) override {
    return std::make_unique<ThreadWork>(group_, rank(), group_->post(rank(), std::move(post)));
  }

  at::Tensor finish(Post post) override {
    const Call call = post.call;
    at::Tensor output = post.output;
    group_->wait(rank(), *group_->post(rank(), std::move(post)));
    // After the others are met: a rank that is out of memory fails alone.
    return call.operation == Call::Operation::kAllocateBucket ? ordinary_bucket(call) : output;
  }

 private:
  std::shared_ptr<ThreadGroup> group_;  // shared: the ranks end in any order, each on its own thread
};

}  // namespace
}  // namespace lrun::detail

namespace lrun {

std::vector<std::unique_ptr<Collectives>> make_thread_group(int world_size, const ThreadGroupOptions& options) {
  if (world_size < 1) throw std::invalid_argument("a group of " + std::to_string(world_size) + " threads");
  if (options.timeout.count() < 1) throw std::invalid_argument("the timeout of a group has to be more than 0 ms");
  const auto group = std::make_shared<detail::ThreadGroup>(
      world_size, std::min(options.timeout, detail::kLongestTimeout), std::vector<int>());
  std::vector<std::unique_ptr<Collectives>> ranks;
  for (int rank = 0; rank < world_size; ++rank)
    ranks.push_back(std::make_unique<detail::ThreadCollectives>(group, rank));
  return ranks;
}

}  // namespace lrun
