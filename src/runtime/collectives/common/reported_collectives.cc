// In: operations of the training thread. Out: the same to the group, and to the launcher that this rank waits in one.
// Made by the session of a worker of lrun.
#include "runtime/collectives/common/reported_collectives.h"

#include <utility>

#include "runtime/collectives/common/group_member.h"
#include "runtime/collectives/common/row_sizes.h"

namespace lrun::detail {
namespace {

class ReportedWork final : public CollectiveWork {
 public:
  ReportedWork(std::unique_ptr<CollectiveWork> work, std::shared_ptr<const CallReporter> reporter)
      : work_(std::move(work)), reporter_(std::move(reporter)) {}

  [[nodiscard]] bool done() const override { return work_->done(); }
  void wait() override {
    const CallReporter::Call call(*reporter_, ReportedOperation::kAllReduce);
    work_->wait();
  }

 private:
  std::unique_ptr<CollectiveWork> work_;
  std::shared_ptr<const CallReporter> reporter_;
};

class ReportedCollectives final : public GroupMember {
 public:
  ReportedCollectives(std::unique_ptr<Collectives> group, std::shared_ptr<const CallReporter> reporter)
      : GroupMember(group->name(), group->rank(), group->world_size(), group->timeout()),
        reporter_(std::move(reporter)),
        group_(std::move(group)) {}

  at::Tensor allocate_bucket(std::int64_t count, at::ScalarType dtype) override {
    const CallReporter::Call call(*reporter_, ReportedOperation::kAllocateBucket);
    return group_->allocate_bucket(count, dtype);
  }

  std::unique_ptr<CollectiveWork> all_reduce(at::Tensor tensor, ReduceOp op, std::uint64_t tag) override {
    return std::make_unique<ReportedWork>(group_->all_reduce(std::move(tensor), op, tag), reporter_);
  }

  void broadcast(at::Tensor tensor, int root) override {
    const CallReporter::Call call(*reporter_, ReportedOperation::kBroadcast);
    group_->broadcast(std::move(tensor), root);
  }

  void all_gather(at::Tensor output, const at::Tensor& input) override {
    const CallReporter::Call call(*reporter_, ReportedOperation::kAllGather);
    group_->all_gather(std::move(output), input);
  }

  void reduce_scatter(at::Tensor output, const at::Tensor& input, ReduceOp op) override {
    const CallReporter::Call call(*reporter_, ReportedOperation::kReduceScatter);
    group_->reduce_scatter(std::move(output), input, op);
  }

  void barrier() override {
    const CallReporter::Call call(*reporter_, ReportedOperation::kBarrier);
    group_->barrier();
  }

  /// All ranks agree on the members in an all_gather first.
  std::unique_ptr<Collectives> subgroup(const std::vector<int>& ranks) override {
    const CallReporter::Call call(*reporter_, ReportedOperation::kAllGather);
    auto group = group_->subgroup(ranks);
    return as_own(group ? report_calls(std::move(group), reporter_) : nullptr);
  }

  void abort(const std::string& reason) override { group_->abort(reason); }

 private:
  void move_rows(at::Tensor output, const at::Tensor& input, const RowSizes& sizes) override {
    const CallReporter::Call call(*reporter_, ReportedOperation::kAllToAll);
    sizes.move(*group_, output, input);
  }

  std::shared_ptr<const CallReporter> reporter_;  // a subgroup may outlive this group
  std::unique_ptr<Collectives> group_;
};

}  // namespace

std::unique_ptr<Collectives> report_calls(std::unique_ptr<Collectives> group,
                                          std::shared_ptr<const CallReporter> reporter) {
  return std::make_unique<ReportedCollectives>(std::move(group), std::move(reporter));
}

}  // namespace lrun::detail
