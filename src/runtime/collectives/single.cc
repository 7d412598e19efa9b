#include "runtime/collectives/single.h"

#include <ATen/ops/zeros.h>

#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "runtime/collectives/common/call.h"
#include "runtime/collectives/common/failure.h"
#include "runtime/collectives/common/posted_collectives.h"

namespace lrun::detail {
namespace {

class DoneWork final : public CollectiveWork {
 public:
  [[nodiscard]] bool done() const override { return true; }
  void wait() override {}
};

class SingleCollectives final : public PostedCollectives {
 public:
  explicit SingleCollectives(std::chrono::milliseconds timeout) : timeout_(timeout) {}

  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int world_size() const override { return 1; }
  [[nodiscard]] std::string name() const override { return "single"; }
  [[nodiscard]] std::chrono::milliseconds timeout() const override { return timeout_; }

  at::Tensor allocate_bucket(std::int64_t count, at::ScalarType dtype) override {
    finish({allocate_bucket_call(count, dtype), {}, {}});
    return at::zeros({count}, at::TensorOptions().dtype(dtype));
  }

  Failure fail(const Failure& failure) override {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = failure;
    return *failure_;
  }

  std::unique_ptr<CollectiveWork> start(Post post) override {
    finish(std::move(post));
    return std::make_unique<DoneWork>();
  }

  at::Tensor finish(Post post) override {
    require_usable();
    if (post.input.defined()) copy(post.output, post.input);
    return post.output;
  }

 private:
  void require_usable() {
    const std::lock_guard lock(mutex_);
    if (failure_) failure_->raise();
  }

  // Writes the bytes rather than through copy_(), which autograd would record.
  static void copy(const at::Tensor& output, const at::Tensor& input) {
    if (input.is_same(output) || input.nbytes() == 0) return;
    std::memmove(output.mutable_data_ptr(), input.const_data_ptr(), input.nbytes());
  }

  const std::chrono::milliseconds timeout_;
  std::mutex mutex_;
  std::optional<Failure> failure_;
};

}  // namespace

std::unique_ptr<Collectives> make_single(std::chrono::milliseconds timeout) {
  return std::make_unique<SingleCollectives>(timeout);
}

}  // namespace lrun::detail
