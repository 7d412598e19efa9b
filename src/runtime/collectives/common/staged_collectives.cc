// In: operations on tensors of a GPU. Out: the same operations on copies in CPU memory, for a backend of the CPU. Made
// by the session for such a backend.
#include "runtime/collectives/common/staged_collectives.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include "runtime/collectives/common/group_member.h"
#include "runtime/collectives/common/row_sizes.h"

namespace lrun::detail {
namespace {

/// \throws std::invalid_argument  an argument that the group would refuse, but a copy on the CPU would hide.
void require_contiguous(const at::Tensor& tensor, const char* operation) {
  if (tensor.defined() && !tensor.is_contiguous()) {
    throw std::invalid_argument(std::string(operation) + ": the tensor is not contiguous");
  }
}

/// The tensor itself where it is on the CPU, and undefined where it is undefined.
at::Tensor on_cpu(const at::Tensor& tensor, const char* operation) {
  require_contiguous(tensor, operation);
  return tensor.defined() ? tensor.detach().to(at::kCPU) : tensor;
}

/// A tensor like it, without the values, which are about to be written.
at::Tensor like_on_cpu(const at::Tensor& tensor, const char* operation) {
  require_contiguous(tensor, operation);
  if (!tensor.defined() || tensor.is_cpu()) return tensor;
  return at::empty_like(tensor.detach(), at::TensorOptions().device(at::kCPU));
}

void copy_back(const at::Tensor& tensor, const at::Tensor& staged) {
  const at::NoGradGuard no_grad;
  if (!tensor.is_cpu()) tensor.detach().copy_(staged);
}

class StagedWork final : public CollectiveWork {
 public:
  StagedWork(std::unique_ptr<CollectiveWork> work, at::Tensor tensor, at::Tensor staged)
      : work_(std::move(work)), tensor_(std::move(tensor)), staged_(std::move(staged)) {}

  [[nodiscard]] bool done() const override { return work_->done(); }
  void wait() override {
    work_->wait();
    if (!std::exchange(copied_, true)) copy_back(tensor_, staged_);
  }

 private:
  std::unique_ptr<CollectiveWork> work_;
  at::Tensor tensor_;
  at::Tensor staged_;
  bool copied_ = false;
};

class StagedCollectives final : public GroupMember {
 public:
  StagedCollectives(std::unique_ptr<Collectives> group, at::Device device)
      : GroupMember(group->name(), group->rank(), group->world_size(), group->timeout()),
        group_(std::move(group)),
        device_(device) {}

  at::Tensor allocate_bucket(std::int64_t count, at::ScalarType dtype) override {
    group_->allocate_bucket(std::min<std::int64_t>(count, 0), dtype);  // refuses the same arguments as other backends
    return at::zeros({count}, at::TensorOptions().dtype(dtype).device(device_));
  }

  std::unique_ptr<CollectiveWork> all_reduce(at::Tensor tensor, ReduceOp op, std::uint64_t tag) override {
    const at::Tensor staged = on_cpu(tensor, "all_reduce");
    auto work = group_->all_reduce(staged, op, tag);
    return std::make_unique<StagedWork>(std::move(work), std::move(tensor), staged);
  }

  void broadcast(at::Tensor tensor, int root) override {
    const at::Tensor staged = rank() == root ? on_cpu(tensor, "broadcast") : like_on_cpu(tensor, "broadcast");
    group_->broadcast(staged, root);
    if (rank() != root) copy_back(tensor, staged);
  }

  void all_gather(at::Tensor output, const at::Tensor& input) override {
    const at::Tensor staged = like_on_cpu(output, "all_gather");
    group_->all_gather(staged, on_cpu(input, "all_gather"));
    copy_back(output, staged);
  }

  void reduce_scatter(at::Tensor output, const at::Tensor& input, ReduceOp op) override {
    const at::Tensor staged = like_on_cpu(output, "reduce_scatter");
    group_->reduce_scatter(staged, on_cpu(input, "reduce_scatter"), op);
    copy_back(output, staged);
  }

  void barrier() override { group_->barrier(); }

  std::unique_ptr<Collectives> subgroup(const std::vector<int>& ranks) override {
    auto group = group_->subgroup(ranks);
    return as_own(group ? make_staged(std::move(group), device_) : nullptr);
  }

  void abort(const std::string& reason) override { group_->abort(reason); }

 private:
  void move_rows(at::Tensor output, const at::Tensor& input, const RowSizes& sizes) override {
    const at::Tensor staged = like_on_cpu(output, "all_to_all");
    sizes.move(*group_, staged, on_cpu(input, "all_to_all"));
    copy_back(output, staged);
  }

  std::unique_ptr<Collectives> group_;
  const at::Device device_;
};

}  // namespace

std::unique_ptr<Collectives> make_staged(std::unique_ptr<Collectives> group, at::Device device) {
  return std::make_unique<StagedCollectives>(std::move(group), device);
}

}  // namespace lrun::detail
