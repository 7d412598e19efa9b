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

/// The common part of the backends of processes: a queue of operations that a thread performs while the training thread
/// computes, errors that become the group's failure, and a refusal in forked children.
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
  /// \param shown_rank  the number of this rank in messages.
  QueuedCollectives(std::string name, int rank, int world_size, std::chrono::milliseconds timeout, int shown_rank);

  /// Fails the group if operations are in flight, which would wait for the others up to their deadline, and ends the
  /// queue.
  /// \return  false in a forked child: the rank and its threads are the parent's, and memory that these threads use
  /// must not be destroyed.
  bool close();

 private:
  /// Performs an operation on the calling thread. \param patient  a caller waits for it.
  /// \throws a failure of the group, or a local error.
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
