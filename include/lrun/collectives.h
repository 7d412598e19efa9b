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

class Session;

namespace detail {
class GroupMember;
struct RowSizes;
}  // namespace detail

/// How the values of all ranks become one.
enum class ReduceOp {
  kSum,
  kAverage,  ///< The sum divided by the world size; not of integers.
  kMax,
  kMin,
};

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
/// Order    every rank calls the same operations with the same shapes and dtypes in the same order. A difference is
///          found by sequence number and reported on all ranks.
/// Deadline every operation ends within timeout(): a silent peer is CollectiveTimeout, a dead one PeerLost.
/// Failure  the first error fails the group: every later call throws the same error at once. Arguments that one rank
///          can see to be wrong are std::invalid_argument on that rank alone. Nothing is posted then, and the group
///          stays usable; ranks that made the call wait until this rank calls too, ends, or calls abort().
/// Result   bitwise identical on all ranks. Sums are taken in rank order with the same arithmetic by every CPU backend
///          but 'shm+gloo', which adds up the hosts' sums.
/// Threads  one operation is posted at a time per rank; destroy after the last wait().
///
/// Groups of some of the ranks, each rank with its neighbour, and a message between two ranks:
///
///     const int first = group.rank() / 2 * 2;
///     const auto pair = group.subgroup({first, first + 1});  // all ranks call it
///     pair->broadcast(tensor, 0);                            // the first of the pair sends, the other receives
class LRUN_EXPORT Collectives {
 public:
  virtual ~Collectives();

  [[nodiscard]] virtual int rank() const = 0;                           ///< 0 … world_size() − 1.
  [[nodiscard]] virtual int world_size() const = 0;                     ///< The number of ranks of the group.
  [[nodiscard]] virtual std::string name() const = 0;                   ///< 'shm', 'threads', 'nccl', 'gloo', 'single'
  [[nodiscard]] virtual std::chrono::milliseconds timeout() const = 0;  ///< Of every operation.

  /// Memory in which all_reduce needs no copy: 1-D, `count` elements of `dtype`, zeroed. shm shares it between the
  /// ranks; elsewhere it is ordinary memory. Collective: every rank calls it with the same arguments in the same order.
  virtual at::Tensor allocate_bucket(std::int64_t count, at::ScalarType dtype) = 0;

  /// In place. Any contiguous tensor of float16, bfloat16, float32, float64, int32, int64 or uint8; buckets of
  /// allocate_bucket() move no byte twice. kAverage of an integer dtype is refused.
  /// \param tag  the caller's name for this reduction, equal on all ranks. A difference is a CollectiveMismatch, so
  ///             that reductions of equal shape and dtype cannot be mixed up. 0: none. GradientSync uses the highest
  ///             bit.
  virtual std::unique_ptr<CollectiveWork> all_reduce(at::Tensor tensor, ReduceOp op, std::uint64_t tag) = 0;
  std::unique_ptr<CollectiveWork> all_reduce(at::Tensor tensor, ReduceOp op);  ///< With tag 0.

  /// In place: all ranks get `root`'s bytes. Any dtype, contiguous.
  virtual void broadcast(at::Tensor tensor, int root) = 0;

  /// `output` is (world_size, *input.shape), contiguous, same dtype; row r is rank r's input.
  virtual void all_gather(at::Tensor output, const at::Tensor& input) = 0;

  /// `input` is (world_size, *output.shape); rank r gets the sum (or average) of all ranks' row r.
  virtual void reduce_scatter(at::Tensor output, const at::Tensor& input, ReduceOp op) = 0;

  /// Row r of `input` goes to rank r, and row r of `output` comes from there. Both are (world_size, *shape),
  /// contiguous, of the same dtype, which is any, and share no memory. <lrun/exchange.h> takes tensors of different
  /// sizes.
  void all_to_all(at::Tensor output, const at::Tensor& input);

  /// Returns when all ranks have called it.
  virtual void barrier() = 0;

  /// Fails the group for all ranks, so that no rank waits for work that will not come: operations in flight and all
  /// later calls end with PeerLost and `reason`. A group that failed before keeps its first error.
  /// Threads  any.
  virtual void abort(const std::string& reason) = 0;

  /// Makes a group of some of the ranks: ranks[i] becomes its rank i. Every rank of this group calls it, members or
  /// not, and names the members of its own new group: so one call makes several groups, of which each rank is in one at
  /// most.
  ///
  /// The new group has the same backend ('shm' instead of 'shm+gloo' on one host, 'single' for one rank on a CPU) and
  /// timeout, and fails by itself: neither group knows of the other's failures, except that both lose a rank that ends.
  /// Its errors name the ranks as this group does. It may outlive this group. Operations of two groups are not ordered
  /// among each other: with 'nccl' wait for those of the one before those of the other.
  /// \return  null on a rank that is not in `ranks`.
  /// \throws lrun::CollectiveMismatch  on all ranks, which can go on: a rank of `ranks` names others; names both.
  /// \throws std::invalid_argument     there is no such rank, or one is named twice.
  /// \throws lrun::CollectiveTimeout   a member does not come within timeout(), or ends before it has met the others.
  /// \throws lrun::Unsupported         a group of SessionOptions::connect that has no subgroups.
  [[nodiscard]] virtual std::unique_ptr<Collectives> subgroup(const std::vector<int>& ranks);

  /// 1, 2, 3, …: a number for the next user of this group. All ranks get the same number if all ask equally often.
  /// Threads  as for operations.
  [[nodiscard]] std::uint64_t next_number() { return ++numbers_; }

  /// The number of devices over which each rank splits its batches. 1, except in a session under dp or ddp2.
  [[nodiscard]] std::size_t devices_of_rank() const { return devices_of_rank_; }

 protected:
  /// Makes this rank's end of a subgroup, on whose ranks all have agreed. `number`: of this call of subgroup(); the
  /// same on all ranks. Throws lrun::Unsupported unless it is overridden.
  virtual std::unique_ptr<Collectives> join_subgroup(const std::vector<int>& ranks, std::uint64_t number);

 private:
  friend class Session;  // sets devices_of_rank_ once the group is made
  friend class detail::GroupMember;
  friend struct detail::RowSizes;

  /// all_to_all() with rows of any sizes. Unless it is overridden: an all_gather of everything.
  virtual void move_rows(at::Tensor output, const at::Tensor& input, const detail::RowSizes& sizes);

  std::uint64_t numbers_ = 0;
  std::size_t devices_of_rank_ = 1;
};

}  // namespace lrun
