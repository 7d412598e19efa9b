#pragma once

#include <ATen/core/Tensor.h>
#include <lrun/collectives.h>
#include <lrun/gradient_sync.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/ddp/bucket_plan.h"

namespace lrun::detail {

/// The flat buckets of a model's gradients and their reduction, one pass after the other. In a pass each gradient
/// either arrives or is completed, once; a bucket is posted when all of its own have, and all buckets before it are
/// posted.
///
/// Threads  one at a time. Nothing here knows of autograd.
class GradientBuckets {
 public:
  /// Collective: buckets are allocated. None in a world of one.
  /// \param parameters   those that trained_parameters() leaves.
  /// \param collectives  must outlive this object.
  GradientBuckets(std::vector<NamedTensor> parameters, Collectives& collectives, const GradientSyncOptions& options);

  /// Of parameters: 0 in a world of one.
  [[nodiscard]] std::size_t size() const { return slots_.size(); }
  [[nodiscard]] const NamedTensor& parameter(std::size_t index) const { return slots_[index].parameter; }

  void set_comm_hook(CommHook hook) { comm_hook_ = std::move(hook); }  ///< Between passes. Null: all_reduce.

  void begin_pass();  ///< Forgets the one before, finished or not, for which wait() was called.

  /// Makes the bucket's part this parameter's gradient, if it has one.
  void move_in(std::size_t index);
  /// \throws std::logic_error  the gradient lies in a bucket at another place than its own; names the parameter.
  void refuse_foreign_gradient(std::size_t index) const;

  /// \throws std::logic_error  the parameter has another dtype, shape or device than its bucket was made for; names it.
  void refuse_other_form(std::size_t index) const;

  /// The gradient of this pass came, and was moved in.
  void arrive(std::size_t index);
  /// None came in this pass; a gradient that was accumulated before is still averaged.
  void complete(std::size_t index);
  [[nodiscard]] bool arrived(std::size_t index) const { return slots_[index].arrived; }
  /// Whether there is a gradient in this pass: one that came, or one from before.
  [[nodiscard]] bool used(std::size_t index) const;

  /// Posts those that are complete, in their order. `look` sees each bucket's gradients before they are reduced.
  /// \param model, pass  for BucketTag.
  void post_complete(std::uint64_t model, std::uint64_t pass, const std::function<void(const at::Tensor&)>& look);
  /// For all that are posted. \return the first failure.
  std::exception_ptr wait() noexcept;
  /// After all were waited for: scales to an average over `active_ranks`, and gives parameters without a gradient here
  /// the average if any rank had one.
  void receive(int active_ranks);
  /// Of each parameter, after receive(): the share of all ranks that had a gradient for it.
  [[nodiscard]] std::vector<double> shares() const;
  /// Does something once, after receive() of a pass: where gradients did not arrive bucket by bucket, makes buckets
  /// that are in the order of their arrival on rank 0, and moves the gradients there. Collective.
  void settle_order();

  /// In the order of their reduction, 1-D.
  [[nodiscard]] std::vector<at::Tensor> flat() const;

 private:
  /// Where a gradient lies.
  struct Place {
    at::Tensor view;  // not a view to autograd, which could not be detached in place
    std::size_t bucket = 0;
    std::size_t flag = 0;  // index in the bucket's flags
  };

  struct Slot {
    NamedTensor parameter;
    Place place;
    bool arrived = false;
  };

  struct Bucket {
    at::Tensor flat;
    at::Tensor wire;  // what is reduced where that is compressed; else undefined
    at::Tensor flags;
    std::vector<std::size_t> slots;
    std::size_t pending = 0;
    std::vector<bool> used;                              // this rank's flags
    std::vector<std::unique_ptr<CollectiveWork>> works;  // in flight
  };

  void make_buckets(std::vector<PlannedBucket> plan);
  [[nodiscard]] Bucket make_bucket(const PlannedBucket& planned);
  void note(Slot& slot, bool used);
  void post(std::size_t index, std::uint64_t tag);

  Collectives& collectives_;
  const GradientSyncOptions options_;
  CommHook comm_hook_;
  std::vector<Slot> slots_;
  std::vector<Bucket> buckets_;
  std::vector<PlannedBucket> plan_;  // of buckets_
  std::size_t next_bucket_ = 0;      // the first that is not posted
  ArrivalOrder arrivals_;            // in this pass, until the order is settled
  bool order_is_settled_ = false;
};

}  // namespace lrun::detail
