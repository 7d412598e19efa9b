#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "runtime/collectives/common/failure.h"
#include "runtime/collectives/common/owner_process.h"
#include "runtime/collectives/common/posted_collectives.h"
#include "runtime/collectives/common/work_queue.h"

namespace lrun::detail {

/// What the backends of processes have in common: a queue of operations that a thread performs while the training
/// thread computes, errors that become the group's failure, and a refusal in forked children.
///
/// A backend performs operations and keeps the failure. Its destructor calls close() first: the queue's thread uses
/// what the backend owns.
class QueuedCollectives : public PostedCollectives {
 public:
  QueuedCollectives(const QueuedCollectives&) = delete;
  QueuedCollectives& operator=(const QueuedCollectives&) = delete;
  ~QueuedCollectives() override;

  std::unique_ptr<CollectiveWork> start(Post post) final;
  at::Tensor finish(Post post) final;
  Failure fail(const Failure& failure) final;

 protected:
  /// \param shown_rank  what messages call this rank.
  QueuedCollectives(std::string name, int rank, int world_size, std::chrono::milliseconds timeout, int shown_rank);

  /// Fails the group where operations are in flight, as they would wait for the others up to their deadline, and ends
  /// the queue. \return  false in a forked child: the rank is the parent's and stays, and what the parent's threads use
  /// must not be destroyed.
  bool close();

 private:
  /// Performs an operation on the calling thread. \param patient  somebody waits for it.
  /// \throws a failure of the group, or what went wrong here.
  virtual void perform(Post& post, std::uint64_t sequence, bool patient) = 0;
  /// The group's failure, once there is one. Threads  any.
  virtual std::optional<Failure> failure() = 0;
  /// Fails the group for all ranks unless it has failed. \return  its first failure. Threads  any.
  virtual Failure fail_group(const Failure& failure) = 0;

  void require_usable();
  std::optional<Failure> try_to_perform(Post& post, std::uint64_t sequence, bool patient);

  const OwnerProcess owner_;
  const int shown_rank_;
  std::unique_ptr<WorkQueue> queue_;
};

}  // namespace lrun::detail
