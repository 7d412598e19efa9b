#include "runtime/collectives/single.h"

#include <ATen/ops/zeros.h>

#include <cstring>
#include <mutex>
#include <optional>
#include <string>

#include "runtime/collectives/call.h"
#include "runtime/collectives/failure.h"

namespace lrun {
namespace {

class DoneWork final : public CollectiveWork {
 public:
  [[nodiscard]] bool done() const override { return true; }
  void wait() override {}
};

class SingleCollectives final : public Collectives {
 public:
  explicit SingleCollectives(std::chrono::milliseconds timeout) : timeout_(timeout) {}

  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int world_size() const override { return 1; }
  [[nodiscard]] std::string name() const override { return "single"; }
  [[nodiscard]] std::chrono::milliseconds timeout() const override { return timeout_; }

  at::Tensor allocate_bucket(std::int64_t count, at::ScalarType dtype) override {
    begin(allocate_bucket_call(count, dtype));
    return at::zeros({count}, at::TensorOptions().dtype(dtype));
  }

  std::unique_ptr<CollectiveWork> all_reduce(at::Tensor tensor, ReduceOp op, std::uint64_t tag) override {
    begin(all_reduce_call(tensor, op, tag));
    return std::make_unique<DoneWork>();
  }

  void broadcast(at::Tensor tensor, int root) override { begin(broadcast_call(tensor, root, 1)); }

  void all_gather(at::Tensor output, const at::Tensor& input) override {
    begin(all_gather_call(output, input, 1));
    copy(output, input);
  }

  void reduce_scatter(at::Tensor output, const at::Tensor& input, ReduceOp op) override {
    begin(reduce_scatter_call(output, input, op, 1));
    copy(output, input);
  }

  void barrier() override { begin(barrier_call()); }

  void abort(const std::string& reason) override {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = Failure{Failure::Kind::kPeerLost, reason};
  }

 private:
  void begin(const Call& /*checked by its making*/) {
    const std::lock_guard lock(mutex_);
    if (failure_) failure_->raise();
  }

  // Writes the bytes rather than through copy_(), which autograd would record.
  static void copy(const at::Tensor& output, const at::Tensor& input) {
    if (input.nbytes() > 0) std::memmove(output.mutable_data_ptr(), input.const_data_ptr(), input.nbytes());
  }

  const std::chrono::milliseconds timeout_;
  std::mutex mutex_;
  std::optional<Failure> failure_;
};

}  // namespace

std::unique_ptr<Collectives> make_single(std::chrono::milliseconds timeout) {
  return std::make_unique<SingleCollectives>(timeout);
}

}  // namespace lrun
