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

class Collectives;

/// A parameter or buffer with the name it has in its module ('fc1.weight').
struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

namespace detail {
class GradientSyncState;

/// Each tensor once. LibTorch's Module::parameters() has a tied parameter for each module that registered it, and an
/// optimizer would update it as often.
LRUN_EXPORT std::vector<at::Tensor> distinct(std::vector<at::Tensor> tensors);
}  // namespace detail

/// What gradients of float32 and float64 are on their way between the ranks; those of half precision travel as they
/// are.
enum class WireFormat {
  kSame,      ///< As they are.
  kFloat16,   ///< 11 significant bits; elements beyond 65504 become infinite, below 6e-8 zero.
  kBFloat16,  ///< 8 significant bits, the range of float32.
};

struct GradientSyncOptions {
  /// Size at which a bucket is closed; it may exceed this by its last parameter. Smaller buckets overlap better with
  /// backward, larger ones cost fewer operations. Default: 25 MiB, as torch's DDP.
  std::int64_t bucket_bytes = std::int64_t{25} << 20;
  /// The same for the first bucket, small so that communication begins early. At most bucket_bytes.
  std::int64_t first_bucket_bytes = std::int64_t{1} << 20;
  /// Compresses gradients on their way: fewer bytes for two conversions. Each rank's gradient is rounded once and the
  /// average (summed in float32) once more, so it is off by at most the sum of both roundings; still bitwise equal on
  /// every rank. For slow networks: in shared memory the conversions cost more than they save.
  WireFormat wire = WireFormat::kSame;
  /// Parameters that get no gradient: true, the default, averages without them (see Unused below), at no cost worth
  /// naming. False: one that got none on some rank is std::logic_error out of backward() on every rank, and names it.
  bool find_unused = true;
  /// Promises that each rank's backward() reaches the same parameters every time. Buckets then do not wait until the
  /// end of backward() for a parameter that got no gradient in the first one. Without it such parameters are in the
  /// last buckets if they got none on rank 0, and only these wait; where ranks use different ones the promise helps.
  /// \throws std::logic_error  out of backward(): such a parameter got one later; names it.
  bool static_graph = false;
};

/// While it lives, backward() only accumulates gradients on this rank. The next backward() after it averages all that
/// was accumulated. Guards may nest.
class LRUN_EXPORT NoSyncGuard {
 public:
  explicit NoSyncGuard(std::shared_ptr<detail::GradientSyncState> state);
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
/// Parameters are packed into flat buckets; a bucket is all-reduced as soon as its last gradient has arrived and all
/// buckets before it were, so that every rank reduces the same buckets in the same order. The end of backward() waits
/// for all of them: afterwards the gradients are final.
///
/// Order    at first that of registration, reversed, as gradients come where layers are used in that order. Where the
///          first backward() that averages finds another one, its end makes new buckets, in the order in which
///          gradients arrived on rank 0, with those that did not arrive last; so the reduction overlaps with backward
///          for every model. That costs one small broadcast, and one copy of all gradients where the order was another.
/// Result   grad_i = (1/W) · Σ_r grad_i^(r), W = world size; bitwise equal on every rank. A rank on which a parameter
///          got no gradient counts as zeros. A parameter that got none on any rank keeps the gradient that it had
///          (undefined after zero_grad(), so that optimizers pass it by, as they do in one process). A gradient that
///          is kept is the average of W equal ones, (g + … + g) / W: bitwise g for W of 1, 2 and 4, elsewhere off by
///          the rounding of W operations, at most W · ε/2 of its size (ε of the dtype) for each backward().
/// Unused   parameters are found by themselves, without walking the graph: what got no gradient by the end of
///          backward() is completed then. Every rank must call backward() equally often.
/// Views    after the first backward() each gradient is a view of its bucket and stays one: zero_grad() of C++ sets
///          gradients to undefined, the next backward() puts them back into the bucket. Assigning to grad() is allowed;
///          clone() what is assigned if it is another parameter's gradient or a part of a bucket.
/// Types    float16, bfloat16, float32, float64; sparse gradients are made dense. One dtype and device a bucket.
/// Cost     memory for one more copy of all gradients only while a backward() produces them, and while new buckets are
///          made; no all-reduce beyond the buckets. One rank: nothing at all.
/// Limits   backward(create_graph=true) is not averaged through; a parameter must get its gradient once a backward(),
///          and belongs to one GradientSync at a time; one backward() runs through one wrapped model (several end in
///          CollectiveMismatch when ranks differ in their order); requires_grad stays as it was when the model was
///          wrapped.
/// Errors   those of Collectives come out of backward(); gradients are then unspecified: restart from a checkpoint.
/// Threads  construct, prepare() and destroy on the training thread; backward() from any one thread at a time.
class LRUN_EXPORT GradientSync {
 public:
  /// \param parameters   in the same order on every rank; frozen ones (no requires_grad) are passed by, a tensor that
  ///                     occurs twice (tied weights) counts once.
  /// \param collectives  must outlive this object.
  /// \throws std::invalid_argument  a non-leaf or a tensor of inference mode, sizes ≤ 0 in `options`, or a parameter
  ///                                that another living GradientSync averages already, also in a world of one; names
  ///                                the parameter.
  /// \throws lrun::Unsupported      a dtype that cannot be averaged; names the parameter.
  GradientSync(std::vector<NamedTensor> parameters, Collectives& collectives, GradientSyncOptions options = {});
  /// Waits for buckets in flight and leaves the gradients where they are; never throws.
  ~GradientSync();
  GradientSync(GradientSync&&) noexcept;
  GradientSync& operator=(GradientSync&&) noexcept;

  /// Called before each forward: forgets a backward() that ended in an exception.
  /// \throws std::logic_error  a parameter has another dtype, shape or device than at construction (module->to(…), or
  ///                           load() of such an archive), or has another parameter's gradient; names it.
  void prepare();

  /// Makes backward() through `output` finish the synchronisation even when no parameter gets a gradient on this rank.
  /// Does nothing to a tensor without a graph.
  void watch(const at::Tensor& output);

  /// Runs `backward`, which may call backward() several times and write gradients itself, then averages once what has
  /// come together (under no_sync(): not at all).
  /// \throws what `backward` throws: nothing is averaged then, and this rank counts one synchronisation more.
  void average_after(const std::function<void()>& backward);

  /// Runs `step`, a forward or a whole training step. When it throws before its backward() began to average, this rank
  /// counts one synchronisation more (under no_sync(): not), as where backward() itself throws: if the program catches
  /// that and goes on, its next step is not taken for the one that the other ranks are in, and all are told by
  /// CollectiveMismatch. Where all ranks throw in the same step, all go on.
  void attempt(const std::function<void()>& step);

  [[nodiscard]] NoSyncGuard no_sync();
  [[nodiscard]] bool syncs() const;  ///< False under no_sync().

  /// Averages over this many of the ranks, those that have a batch, from the next backward() on; the others contribute
  /// zeros. The same on all ranks. Default: the world size. See Join.
  void set_active_ranks(int count);

  /// Watches every synchronisation from now on: see lrun/guards.h. Collective in the steps that compare something; the
  /// same options on all ranks.
  /// \param parameters  those that are to be compared, frozen ones too, on one device.
  void guard(std::vector<NamedTensor> parameters, GuardOptions options);
  /// Whether the tensors of the batch of this step are to be shown to look_at_batch() before backward().
  [[nodiscard]] bool compares_batches() const;
  void look_at_batch(const std::vector<at::Tensor>& tensors);
  /// Runs a collective operation that belongs to a step, as backward() runs its own: when it fails, the error says
  /// which step that was, once guard() was called.
  void within_step(const std::function<void()>& operation) const;

  /// Flat buckets in the order of their reduction, 1-D; for tests and inspection. Empty in a world of one.
  [[nodiscard]] std::vector<at::Tensor> buckets() const;

 private:
  // Shared with the hooks inside the autograd graph, which can outlive this object.
  std::shared_ptr<detail::GradientSyncState> state_;
};

}  // namespace lrun
