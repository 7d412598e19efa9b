#include "runtime/collectives/single.h"

#include <cstring>
#include <mutex>
#include <optional>
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
  explicit SingleCollectives(std::chrono::milliseconds timeout) : PostedCollectives("single", 0, 1, timeout) {
    set_subgroup_maker(
        [timeout](const std::vector<int>& /*ranks*/, std::uint64_t /*number*/) { return make_single(timeout); });
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
    if (post.call.operation == Call::Operation::kAllocateBucket) return ordinary_bucket(post.call);
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

  std::mutex mutex_;
  std::optional<Failure> failure_;
};

}  // namespace

std::unique_ptr<Collectives> make_single(std::chrono::milliseconds timeout) {
  return std::make_unique<SingleCollectives>(timeout);
}

}  // namespace lrun::detail
