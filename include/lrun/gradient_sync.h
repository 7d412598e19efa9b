#pragma once

#include <ATen/core/Tensor.h>
#include <lrun/export.h>
#include <lrun/guards.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace lrun {

class CollectiveWork;
class Collectives;

/// A parameter or buffer with its name in the module ('fc1.weight').
struct NamedTensor {
  std::string name;   ///< With the names of the modules around it, joined by dots.
  at::Tensor tensor;  ///< The module's own, not a copy.
};

namespace detail {
class GradientSyncState;

/// Each tensor once. LibTorch's Module::parameters() lists a tied parameter once per module that registered it, and an
/// optimizer would update it as often.
LRUN_EXPORT std::vector<at::Tensor> distinct(std::vector<at::Tensor> tensors);
}  // namespace detail

/// The format in which gradients of float32 and float64 travel between ranks. Those of half precision travel as they
/// are.
enum class WireFormat {
  kSame,      ///< Uncompressed.
  kFloat16,   ///< 11 significant bits; elements beyond 65504 become infinite, below 6e-8 zero.
  kBFloat16,  ///< 8 significant bits, the range of float32.
};

/// A bucket of gradients on its way to the other ranks.
struct GradBucket {
  std::size_t index = 0;  ///< In the order of reduction. The first averaged backward() may end with other buckets.
  at::Tensor buffer;      ///< This rank's gradients, 1-D, in the format of GradientSyncOptions::wire, with gaps.
};

/// Averages the buffer of a bucket over the ranks of `collectives`, in place, in a way of your own: torch's
/// communication hook. See GradientSync::register_comm_hook(). \return the operation in flight, for which the end of
/// backward() waits: that of all_reduce(), or one of your own,
///         whose wait() may finish the average on this rank. Null: done.
using CommHook = std::function<std::unique_ptr<CollectiveWork>(Collectives& collectives, const GradBucket& bucket)>;

/// How gradients are packed and sent.
struct GradientSyncOptions {
  /// Size at which a bucket is closed; the last parameter may exceed it. Smaller buckets overlap better with backward,
  /// larger ones need fewer operations. Default: 25 MiB, as in torch's DDP.
  std::int64_t bucket_bytes = std::int64_t{25} << 20;
  /// The same for the first bucket, which is small so that communication begins early. At most bucket_bytes.
  std::int64_t first_bucket_bytes = std::int64_t{1} << 20;
  /// Compresses gradients between ranks: fewer bytes, at the cost of two conversions. Each rank's gradient is rounded
  /// once, and the average (summed in float32) once more; the error is at most the sum of both roundings. The result is
  /// still bitwise equal on all ranks. Meant for slow networks: in shared memory the conversions cost more than they
  /// save.
  WireFormat wire = WireFormat::kSame;
  /// True, the default: parameters without a gradient are left out of the average (see Unused below), at negligible
  /// cost. False: backward() throws std::logic_error on every rank if a parameter got no gradient on some rank; names
  /// it.
  bool find_unused = true;
  /// Promises that each rank's backward() reaches the same parameters every time. Buckets then do not wait until the
  /// end of backward() for parameters that got no gradient in the first one. Without the promise only the last buckets
  /// wait: they hold the parameters that got no gradient on rank 0. The promise helps if ranks use different
  /// parameters.
  /// \throws std::logic_error  out of backward(): such a parameter got a gradient later; names it.
  bool static_graph = false;
};

/// While it lives, backward() only accumulates gradients on this rank. The next backward() afterwards averages
/// everything that was accumulated. Guards may be nested.
class LRUN_EXPORT NoSyncGuard {
 public:
  /// Made by GradientSync::no_sync().
  explicit NoSyncGuard(std::shared_ptr<detail::GradientSyncState> state);
  /// Afterwards only the new guard counts.
  NoSyncGuard(NoSyncGuard&& other) noexcept;
  NoSyncGuard& operator=(NoSyncGuard&&) = delete;
  NoSyncGuard(const NoSyncGuard&) = delete;
  NoSyncGuard& operator=(const NoSyncGuard&) = delete;
  ~NoSyncGuard();

 private:
  // Shared with the GradientSync, which may be destroyed first.
  std::shared_ptr<detail::GradientSyncState> state_;
};

/// Averages gradients over all ranks while backward() runs.
///
/// Parameters are packed into flat buckets. A bucket is all-reduced as soon as its last gradient has arrived and all
/// buckets before it have been posted, so that every rank reduces the same buckets in the same order. The end of
/// backward() waits for all of them; afterwards the gradients are final.
///
/// Order    at first the reverse order of registration. If gradients arrive in another order in the first averaged
///          backward(), its end makes new buckets in the order of arrival on rank 0, with parameters that got no
///          gradient in the last ones. So the reduction overlaps with backward for every model. This costs one small
///          broadcast, and one copy of all gradients if the order has changed.
/// Result   grad_i = (1/W) · Σ_r grad_i^(r), W = world size; bitwise equal on all ranks. A rank on which a parameter
///          got no gradient contributes zeros. A parameter without a gradient on any rank keeps its old one (undefined
///          after zero_grad(), so that optimizers skip it, as in one process). A kept gradient is the average of W
///          equal ones, (g + … + g) / W: bitwise g for W of 1, 2 and 4; for other W the rounding of W operations
///          changes it by at most W · ε/2 of its size (ε of the dtype) in each backward().
/// Unused   parameters need no walk of the graph: the end of backward() completes those without a gradient. Every rank
///          must call backward() equally often.
/// Views    after the first backward() each gradient is a view of its bucket and stays one: C++'s zero_grad() sets
///          gradients to undefined, and the next backward() puts them back into the bucket. You may assign to grad();
///          assign a clone() if the value is another parameter's gradient or a part of a bucket.
/// Types    float16, bfloat16, float32, float64; sparse gradients are made dense. One dtype and device per bucket.
/// Cost     memory for a second copy of all gradients only while a backward() produces them and while new buckets are
///          made. No all-reduce beyond the buckets. One rank: no cost.
/// Limits   backward(create_graph=true) is not averaged through. A parameter must get its gradient once per backward()
///          and belongs to one GradientSync at a time. One backward() runs through one wrapped model; several models
///          end in CollectiveMismatch if ranks run them in different orders. requires_grad must not change after
///          wrapping.
/// Errors   errors of Collectives come out of backward(). The gradients are then unspecified: restart from a
///          checkpoint.
/// Threads  construct, prepare() and destroy on the training thread; backward() from any one thread at a time.
class LRUN_EXPORT GradientSync {
 public:
  /// \param parameters   in the same order on every rank. Frozen ones (no requires_grad) are skipped; a tensor that
  ///                     occurs twice (tied weights) counts once.
  /// \param collectives  must outlive this object.
  /// \throws std::invalid_argument  a parameter is not a leaf, was made in inference mode, or is averaged by another
  ///                                living GradientSync (also in a world of one); names the parameter. Or a size in
  ///                                `options` is not positive.
  /// \throws lrun::Unsupported      a dtype that cannot be averaged; names the parameter.
  GradientSync(std::vector<NamedTensor> parameters, Collectives& collectives, GradientSyncOptions options = {});
  /// Waits for buckets in flight. Gradients stay where they are. Never throws.
  ~GradientSync();
  /// The source may only be destroyed or assigned to afterwards.
  GradientSync(GradientSync&&) noexcept;
  /// The source may only be destroyed or assigned to afterwards.
  GradientSync& operator=(GradientSync&&) noexcept;

  /// Called before each forward. Forgets a backward() that ended in an exception.
  /// \throws std::logic_error  a parameter has another dtype, shape or device than at construction (after
  ///                           module->to(…), or load() of such an archive), or has another parameter's gradient; names
  ///                           it.
  void prepare();

  /// Makes backward() through `output` finish the synchronisation even if no parameter gets a gradient on this rank.
  /// Does nothing to a tensor without a graph.
  void watch(const at::Tensor& output);

  /// Runs `backward`, which may call backward() several times and write gradients itself, then averages the result once
  /// (under no_sync(): not at all).
  /// \throws what `backward` throws. Nothing is averaged then, and this rank counts one more synchronisation.
  void average_after(const std::function<void()>& backward);

  /// Runs `step`, a forward or a whole training step. If it throws before its backward() begins to average, this rank
  /// counts one more synchronisation (not under no_sync()), as it does if backward() itself throws. So if the program
  /// catches the exception and goes on, its next step cannot be mistaken for the step of the other ranks, and all ranks
  /// get CollectiveMismatch. If all ranks throw in the same step, all can go on.
  void attempt(const std::function<void()>& step);

  /// Puts `hook` in the place of the buckets' all_reduce, from the next backward() on; null: all_reduce again.
  ///
  ///     ddp.gradient_sync().register_comm_hook([](lrun::Collectives& group, const lrun::GradBucket& bucket) {
  ///       bucket.buffer.clamp_(-1, 1);  // each rank's own gradients, before they are averaged
  ///       return group.all_reduce(bucket.buffer, lrun::ReduceOp::kAverage);
  ///     });
  ///
  /// The same on all ranks, as every rank has the same buckets in the same order and has to end with the same bits. The
  /// hook runs on the thread of backward(), which throws what it throws. The average is over all ranks, also under
  /// Join, which scales it. Costs a short all_reduce a bucket for unused parameters and ranks whose buckets differ. In
  /// a world of one it is not called. Of a Model it is model.strategy().gradient_sync()->register_comm_hook(…).
  void register_comm_hook(CommHook hook);

  /// While the guard lives, backward() only accumulates on this rank.
  [[nodiscard]] NoSyncGuard no_sync();
  [[nodiscard]] bool syncs() const;  ///< False under no_sync().

  /// From the next backward() on averages over this many ranks, those that have a batch; the others contribute zeros.
  /// The same number on all ranks. Default: the world size. See Join.
  void set_active_ranks(int count);

  /// Checks every synchronisation from now on: see lrun/guards.h. Collective in steps that compare something; the same
  /// options on all ranks.
  /// \param parameters  to be compared, including frozen ones; all on one device.
  void guard(std::vector<NamedTensor> parameters, GuardOptions options);
  /// Whether look_at_batch() wants the tensors of this step's batch before backward().
  [[nodiscard]] bool compares_batches() const;
  /// Notes the batch of the next backward(), which compares batches between ranks.
  void look_at_batch(const std::vector<at::Tensor>& tensors);
  /// Runs a collective operation that belongs to a step, as backward() runs its own. After guard() was called, an error
  /// says which step it was.
  void within_step(const std::function<void()>& operation) const;

  /// The flat buckets in the order of their reduction, 1-D; for tests and inspection. Empty in a world of one.
  [[nodiscard]] std::vector<at::Tensor> buckets() const;

 private:
  // Shared with the hooks inside the autograd graph, which can outlive this object.
  std::shared_ptr<detail::GradientSyncState> state_;
};

}  // namespace lrun
