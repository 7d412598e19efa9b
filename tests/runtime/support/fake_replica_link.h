#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <lrun/error.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/collectives/common/replica_link.h"

namespace lrun::test {

/// The behaviour of a FakeReplicaLink, and the calls that it got. Outlives the link.
struct FakeNccl {
  /// 'wait', 'begin', 'broadcast 1 [2, 3]', 'sum 0 [4]', 'end', 'settled', 'hold', 'close', 'abort', in order.
  [[nodiscard]] std::vector<std::string> calls() {
    const std::lock_guard lock(mutex);
    return history;
  }
  void say(const std::string& call) {
    const std::lock_guard lock(mutex);
    history.push_back(call);
  }

  std::mutex mutex;
  std::vector<std::string> history;
  std::atomic<int> polls_to_settle{0};  ///< Of each group, and of connecting; −1: never.
  std::atomic<bool> ends{true};         ///< Calls that have begun come to their end.
  std::atomic<bool> has_error{false};   ///< An asynchronous one: 'a cable was cut'.
  std::atomic<bool> refuses{false};     ///< Operations throw: 'no memory'.
  std::atomic<bool> is_aborted{false};
};

/// A detail::ReplicaLink that works on tensors of any device, at the end of each group.
class FakeReplicaLink final : public detail::ReplicaLink {
 public:
  explicit FakeReplicaLink(FakeNccl& nccl) : nccl_(nccl) {}

  bool is_settled() override {
    const int wanted = nccl_.polls_to_settle;
    if (wanted < 0 || polls_++ < wanted) return false;
    polls_ = 0;
    nccl_.say("settled");
    return true;
  }
  void begin_group() override { nccl_.say("begin"); }
  void end_group() override {
    nccl_.say("end");
    const at::NoGradGuard no_grad;
    for (const auto& work : std::exchange(work_, {})) work();
  }
  void broadcast(std::size_t replica, const at::Tensor& tensor) override {
    ask("broadcast", replica, tensor);
    if (replica == 0) first_ = tensor;
    if (replica > 0) work_.push_back([from = first_, tensor] { tensor.copy_(from); });
  }
  void sum(std::size_t replica, const at::Tensor& tensor) override {
    ask("sum", replica, tensor);
    if (replica == 0) first_ = tensor;
    if (replica > 0) work_.push_back([into = first_, tensor] { into.add_(tensor.to(into.device())); });
  }
  void wait_for_callers() override { nccl_.say("wait"); }
  void hold_callers() override { nccl_.say("hold"); }
  bool is_reached() override { return nccl_.ends; }
  std::string asynchronous_error() override { return nccl_.has_error ? "a cable was cut" : ""; }
  void close(SteadyTime) noexcept override { nccl_.say("close"); }
  void abort() noexcept override {
    if (!nccl_.is_aborted.exchange(true)) nccl_.say("abort");
  }

 private:
  void ask(const std::string& operation, std::size_t replica, const at::Tensor& tensor) {
    if (nccl_.refuses) throw Error("no memory");
    std::string sizes;
    for (const auto size : tensor.sizes()) sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
    nccl_.say(operation + " " + std::to_string(replica) + " [" + sizes + "]");
  }

  FakeNccl& nccl_;
  int polls_ = 0;
  at::Tensor first_;
  std::vector<std::function<void()>> work_;
};

}  // namespace lrun::test
