#include "runtime/launch/fork_safety.h"

#include <ATen/ops/ones.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <system_error>

#include "base/child_query.h"
#include "process/fork_child.h"
#include "runtime/launch/process_start.h"

namespace lrun::detail {
namespace {

/// Files that a driver's library opens when a context is made, and only then; tools that just count GPUs do not.
bool is_gpu_context(std::string_view file) {
  constexpr std::array kFiles{std::string_view("/dev/nvidia-uvm"), std::string_view("/dev/kfd")};
  return std::find(kFiles.begin(), kFiles.end(), file) != kFiles.end();
}

int threads_since_start() {
  const auto& before = process_start().threads;
  std::vector<pid_t> fresh;
  const auto now = threads_of_this_process();
  std::set_difference(now.begin(), now.end(), before.begin(), before.end(), std::back_inserter(fresh));
  std::erase(fresh, ::gettid());  // liblrun may have been loaded by another thread than this
  return static_cast<int>(fresh.size());
}

/// The engine's own check whether it works in this fork is not accessible.
std::string try_backward() {
  try {
    at::ones({1}).requires_grad_().sum().backward();
    return "yes";
  } catch (const std::exception&) {
    return "no";
  }
}

}  // namespace

std::string why_not_fork(const ForkFacts& facts) {
  if (std::any_of(facts.open_files.begin(), facts.open_files.end(), is_gpu_context)) {
    return "a GPU was used in this process before, and a context of CUDA or ROCm does not work in a fork";
  }
  if (facts.new_threads > 0) {
    return std::to_string(facts.new_threads) + (facts.new_threads == 1 ? " other thread runs" : " other threads run") +
           " in this process, and a fork has none of them: the thread pool of LibTorch, for example, would hang there";
  }
  if (!facts.backward_works) return "autograd does not work in its forks: backward() was called in this process before";
  return {};
}

ForkFacts fork_facts() {
  ForkFacts facts;
  for (const int fd : open_descriptors()) {
    std::error_code error;
    facts.open_files.push_back(std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), error).string());
  }
  facts.new_threads = threads_since_start();
  if (!why_not_fork(facts).empty()) return facts;  // the question would be asked in a fork
  constexpr Duration kPatience(60'000);
  facts.backward_works = query_in_child(try_backward, kPatience).text == "yes";
  return facts;
}

}  // namespace lrun::detail
