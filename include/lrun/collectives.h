#pragma once

#include <ATen/core/Tensor.h>
#include <lrun/export.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace lrun {

enum class ReduceOp { kSum, kAverage, kMax, kMin };

/// An operation in flight.
///
/// Threads  wait() on the thread that started the operation; done() anywhere.
class LRUN_EXPORT CollectiveWork {
 public:
  virtual ~CollectiveWork();
  /// True when wait() would return (or throw) at once.
  [[nodiscard]] virtual bool done() const = 0;
  /// Blocks until the tensors hold the result (on a GPU: until the current stream may use them).
  /// \throws lrun::CollectiveTimeout  names the ranks that are missing.
  /// \throws lrun::PeerLost           names the rank that ended.
  /// \throws lrun::CollectiveMismatch the ranks called different operations; names both.
  virtual void wait() = 0;
};

/// Communication among the ranks of a group.
///
/// Order    every rank calls the same operations with the same shapes and dtypes in the same order; a difference is
///          detected by sequence number and reported on all ranks.
/// Deadline every operation ends within timeout(); silence of a peer is CollectiveTimeout, its death PeerLost.
/// Failure  the first error poisons the group: every later call throws the same error at once. Arguments that one rank
///          can see to be wrong are std::invalid_argument on that rank alone: nothing is posted, and the group stays
///          usable. Others that called wait for this rank to call too, to end, or to abort().
/// Result   bitwise identical on all ranks: sums are taken in rank order, with the same arithmetic by every backend of
///          the CPU but 'shm+gloo', which adds up the hosts' sums.
/// Threads  one operation is posted at a time per rank; destroy after the last wait().
class LRUN_EXPORT Collectives {
 public:
  virtual ~Collectives();

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int world_size() const = 0;
  [[nodiscard]] virtual std::string name() const = 0;  ///< 'shm', 'threads', 'nccl', 'gloo', 'single'
  [[nodiscard]] virtual std::chrono::milliseconds timeout() const = 0;

  /// Memory in which all_reduce needs no copy: 1-D, `count` elements of `dtype`, zeroed. Shared between the ranks by
  /// shm; ordinary memory elsewhere. Collective: every rank calls it with the same arguments in the same order.
  virtual at::Tensor allocate_bucket(std::int64_t count, at::ScalarType dtype) = 0;

  /// In place. Any contiguous tensor of float16, bfloat16, float32, float64, int32, int64 or uint8; buckets of
  /// allocate_bucket() move no byte twice. kAverage of an integer dtype is refused.
  /// \param tag  the caller's name for this reduction, equal on all ranks: a difference is a CollectiveMismatch, which
  ///             tells apart what agrees in shape and dtype. 0: none. The highest bit is GradientSync's.
  virtual std::unique_ptr<CollectiveWork> all_reduce(at::Tensor tensor, ReduceOp op, std::uint64_t tag) = 0;
  std::unique_ptr<CollectiveWork> all_reduce(at::Tensor tensor, ReduceOp op);  ///< With tag 0.

  /// In place: `root`'s bytes to all. Any dtype, contiguous.
  virtual void broadcast(at::Tensor tensor, int root) = 0;

  /// `output` is (world_size, *input.shape), contiguous, same dtype; row r is rank r's input.
  virtual void all_gather(at::Tensor output, const at::Tensor& input) = 0;

  /// `input` is (world_size, *output.shape); rank r gets the sum (or average) of all ranks' row r.
  virtual void reduce_scatter(at::Tensor output, const at::Tensor& input, ReduceOp op) = 0;

  virtual void barrier() = 0;

  /// Fails the group for all ranks, so that nobody waits for work that will not come: what is in flight and every later
  /// call ends with PeerLost and `reason`. A group that failed before keeps its first error.
  /// Threads  any.
  virtual void abort(const std::string& reason) = 0;

  /// 1, 2, 3, …: a number for the next user of this group, the same on all ranks when all ask equally often.
  /// Threads  as for operations.
  [[nodiscard]] std::uint64_t next_number() { return ++numbers_; }

  /// Over how many devices each rank splits its batches: 1, but for a group of a session under dp or ddp2.
  [[nodiscard]] std::size_t devices_of_rank() const { return devices_of_rank_; }
  void set_devices_of_rank(std::size_t devices) { devices_of_rank_ = devices; }  ///< The session's to call.

 private:
  std::uint64_t numbers_ = 0;
  std::size_t devices_of_rank_ = 1;
};

}  // namespace lrun
