// NCCL with one rank: the ends of its waits, what it refuses, what it leaves behind; and ranks that share a GPU.

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lrun/session.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>

#include "runtime/collectives/registry.h"
#include "runtime/cuda/gpus.h"
#include "runtime/cuda/on_gpu.h"

namespace lrun::detail::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;
using ::testing::MatchesRegex;

constexpr std::int64_t kGibibyte = std::int64_t{1} << 30;

std::unique_ptr<Collectives> make_alone(const std::string& name, std::chrono::milliseconds timeout = 30s) {
  return make_collectives("nccl", GroupOptions{.name = name, .timeout = timeout});
}

void end_at_the_deadline() {
  const auto group = make_alone("deadline", 500ms);
  group->barrier();
  Spin spin;
  spin.start(4s);
  const auto all_done = mark_current_stream();
  const auto begin = std::chrono::steady_clock::now();
  const std::string error = error_of([&] { group->barrier(); });
  const auto waited = std::chrono::steady_clock::now() - begin;
  require(!all_done(), "the GPU was not busy for long enough");
  require(error ==
              "CollectiveTimeout: barrier #2 did not begin within 500 ms: the GPU of rank 0 has not ended what was "
              "started before it",
          error);
  require(waited > 400ms && waited < 2s,
          "the wait took " + std::to_string(std::chrono::duration<double>(waited).count()) + " s");
  require(error_of([&] { group->barrier(); }) == error, "a later call has another reason");
  synchronize_gpu();
  const auto next = make_alone("after the deadline");
  at::Tensor tensor = at::ones({5}, on_gpu(at::kFloat));
  next->all_reduce(tensor, ReduceOp::kSum)->wait();
  require_equal(tensor.cpu(), at::ones({5}), "the sum in a new group");
}

TEST(NcclOnOneGpu, EndsAtTheDeadlineAndSaysThatTheGpuIsBusy) {
  if (gpus() < 1) GTEST_SKIP() << "no /dev/nvidia0";
  EXPECT_EQ(run_apart(end_at_the_deadline), "");
}

void abort_and_go_on() {
  const auto group = make_alone("abort");
  at::Tensor tensor = at::ones({1000}, on_gpu(at::kFloat));
  const auto work = group->all_reduce(tensor, ReduceOp::kSum);
  group->abort("the user has had enough");
  const std::string expected = "PeerLost: the user has had enough";
  require(work->done(), "work of an aborted group is not done");
  for (const std::string& error :
       {error_of([&] { work->wait(); }), error_of([&] { group->all_reduce(tensor, ReduceOp::kSum); }),
        error_of([&] { group->broadcast(tensor, 0); }), error_of([&] { group->barrier(); })}) {
    require(error == expected, "instead of '" + expected + "': '" + error + "'");
  }
  const auto next = make_alone("after the abort");
  next->barrier();
}

TEST(NcclOnOneGpu, SaysAfterAnAbortWhy) {
  if (gpus() < 1) GTEST_SKIP() << "no /dev/nvidia0";
  EXPECT_EQ(run_apart(abort_and_go_on), "");
}

void require_refused(const std::string& error, const std::string& expected) {
  require(error == "invalid_argument: " + expected, "instead of '" + expected + "': '" + error + "'");
}

void refuse_what_cannot_be_sent() {
  const auto group = make_alone("refusals");
  const at::Tensor turned = at::ones({4, 3}, on_gpu(at::kFloat)).t();
  const at::Tensor rows = at::ones({1, 3, 4}, on_gpu(at::kFloat));
  require_refused(error_of([&] { group->all_reduce(turned, ReduceOp::kSum); }),
                  "all_reduce: the tensor is not contiguous");
  require_refused(error_of([&] { group->broadcast(turned, 0); }), "broadcast: the tensor is not contiguous");
  require_refused(error_of([&] { group->all_gather(rows, turned); }), "all_gather: the tensor is not contiguous");
  require_refused(error_of([&] { group->reduce_scatter(turned, rows, ReduceOp::kSum); }),
                  "reduce_scatter: the tensor is not contiguous");
  require_refused(error_of([&] { group->all_reduce(at::ones({2}, on_gpu(at::kBool)), ReduceOp::kSum); }),
                  "Bool cannot be reduced");
  require_refused(error_of([&] { group->all_reduce(at::ones({2}, on_gpu(at::kLong)), ReduceOp::kAverage); }),
                  "the average of integers is not a whole number; use sum");
  require_refused(error_of([&] { group->broadcast(rows, 1); }), "broadcast: there is no rank 1");
  group->barrier();  // works on
}

void send_empty_tensors() {
  const auto group = make_alone("empty");
  at::Tensor empty = at::empty({0, 3}, on_gpu(at::kFloat));
  group->all_reduce(empty, ReduceOp::kSum)->wait();
  group->broadcast(empty, 0);
  group->all_gather(at::empty({1, 0, 3}, on_gpu(at::kFloat)), empty);
  group->reduce_scatter(empty, at::empty({1, 0, 3}, on_gpu(at::kFloat)), ReduceOp::kSum);
  group->barrier();
}

void send_large_tensors() {
  const auto group = make_alone("large");
  at::Tensor sum = at::full({kGibibyte / 4}, 3, on_gpu(at::kFloat));
  group->all_reduce(sum, ReduceOp::kSum)->wait();
  require(sum.eq(3).all().item<bool>(), "the sum of 1 GiB");
  at::Tensor rows = at::empty({1, kGibibyte / 4}, on_gpu(at::kFloat));
  group->all_gather(rows, sum);
  require(rows.eq(3).all().item<bool>(), "1 GiB of rows");
  at::Tensor bytes = at::full({kGibibyte * 5 / 2}, 7, on_gpu(at::kByte));  // more than 2³¹
  group->broadcast(bytes, 0);
  group->all_reduce(bytes, ReduceOp::kMax)->wait();
  require(bytes.eq(7).all().item<bool>(), "2.5 GiB of bytes");
}

TEST(NcclOnOneGpu, SendsTensorsOfEverySizeAndRefusesViews) {
  if (gpus() < 1) GTEST_SKIP() << "no /dev/nvidia0";
  EXPECT_EQ(run_apart([] {
              refuse_what_cannot_be_sent();
              send_empty_tensors();
              send_large_tensors();
            }),
            "");
}

std::ptrdiff_t count_of(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
}

/// Things that groups may leave behind.
struct Footprint {
  std::ptrdiff_t threads = count_of("/proc/self/task");
  std::ptrdiff_t descriptors = count_of("/proc/self/fd");
  std::size_t gpu_memory = used_gpu_memory();

  [[nodiscard]] std::string text() const {
    return std::to_string(threads) + " threads, " + std::to_string(descriptors) + " descriptors, " +
           std::to_string(gpu_memory >> 20) + " MiB of the GPU";
  }
};

void make_groups(int count) {
  for (int index = 0; index < count; ++index) {
    const auto group = make_alone("group " + std::to_string(index));
    at::Tensor tensor = at::ones({1024}, on_gpu(at::kFloat));
    group->all_reduce(tensor, ReduceOp::kSum)->wait();
    group->barrier();
    if (index % 2 == 1) group->abort("every second one is aborted");
  }
  synchronize_gpu();
}

void leave_nothing() {
  constexpr int kGroups = 12;
  make_groups(4);
  const Footprint before;
  make_groups(kGroups);
  const Footprint after;
  const std::string both = before.text() + " before " + std::to_string(kGroups) + " groups, after them " + after.text();
  require(after.threads < before.threads + kGroups / 2, both);
  require(after.descriptors < before.descriptors + kGroups / 2, both);
  require(after.gpu_memory < before.gpu_memory + (std::size_t{16} << 20), both);
}

TEST(NcclOnOneGpu, LeavesNothingOfManyGroups) {
  if (gpus() < 1) GTEST_SKIP() << "no /dev/nvidia0";
  EXPECT_EQ(run_apart(leave_nothing), "");
}

TEST(NcclOnOneGpu, IsRefusedToRanksThatShareIt) {
  if (gpus() < 1) GTEST_SKIP() << "no /dev/nvidia0";
  const GroupOptions options = group_of(0, 2, "one-gpu-for-two");
  const auto errors = run_ranks_apart(2, [&](int rank) {
    ::setenv("CUDA_VISIBLE_DEVICES", "0", 1);
    GroupOptions own = options;
    own.rank = rank;
    make_collectives("nccl", own);
  });
  EXPECT_THAT(errors,
              Each(MatchesRegex("Unsupported: backend 'nccl' needs a GPU for each rank, and ranks 0 and 1 share "
                                "one .PCI address [0-9A-Fa-f:.]+.: start fewer ranks on that host, or use "
                                "backend 'gloo'")));
}

}  // namespace
}  // namespace lrun::detail::testing
