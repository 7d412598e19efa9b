#pragma once

#include <gtest/gtest.h>
#include <lrun/collectives.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "base/fd.h"
#include "runtime/collectives/bootstrap/group_options.h"
#include "runtime/collectives/bootstrap/store_client.h"

namespace lrun::detail::testing {

/// The store of all tests of this program, served by a child of it at a port that the kernel chose. Call it before
/// forking its users.
StoreAddress test_store();

/// A rank's part of a group that meets in test_store(). `name` is of this test alone. Call it before forking.
GroupOptions group_of(int rank, int world_size, const std::string& name,
                      std::chrono::milliseconds timeout = std::chrono::seconds(20));

/// The code of a rank of a test. Throws to fail: gtest's own checks would be lost in another process.
using RankBody = std::function<void(Collectives&)>;

/// Runs `body` as every rank of a group of `backend` ('threads': threads; 'single': here; others: forked
/// processes, of 'shm+gloo' the last one on another host: so that sums, too, are in the order of ranks).
/// \return  per rank the text of what it threw, preceded by the type's name; empty when it returned.
std::vector<std::string> run_ranks(const std::string& backend, int world_size, const RankBody& body,
                                   std::chrono::milliseconds timeout = std::chrono::seconds(30));

/// The name of a test of (backend, world size): 'gloo2', 'ShmAndGloo3'.
std::string name_of_group(const ::testing::TestParamInfo<std::tuple<std::string, int>>& info);

/// A rank as a forked process.
class RankProcess {
 public:
  /// Forks; the child makes the group with `options`, runs `body` and ends.
  RankProcess(const GroupOptions& options, const RankBody& body, const std::string& backend = "shm");
  /// Forks; the child runs `main`, whatever that is.
  explicit RankProcess(const std::function<void()>& main);
  RankProcess(RankProcess&&) noexcept = default;
  RankProcess& operator=(RankProcess&&) noexcept = default;
  ~RankProcess();  ///< Kills it when it still runs, and reaps it.

  [[nodiscard]] pid_t pid() const { return pid_; }
  void kill() const;
  /// Waits for its end. \return  the exception of the body or of making the group, or how the process ended otherwise.
  std::string result();

 private:
  pid_t pid_;
  Fd output_;
};

/// \throws std::runtime_error  with `what` when it does not hold.
void require(bool holds, const std::string& what);

/// \throws std::runtime_error  when the tensors are not equal in every bit.
void require_equal(const at::Tensor& actual, const at::Tensor& expected, const std::string& what);

/// The exception of `function`, in the text of run_ranks(); empty when it returns.
std::string error_of(const std::function<void()>& function);

/// A number that the ranks of a test share, be they threads or forked processes: how they wait for each other's events
/// without the group under test. Made before the ranks.
class SharedCounter {
 public:
  SharedCounter();
  SharedCounter(const SharedCounter&) = delete;
  SharedCounter& operator=(const SharedCounter&) = delete;
  ~SharedCounter();

  void add();
  /// \throws std::runtime_error  when it does not become `count` (or reach it) within 20 s.
  void wait_for(std::uint32_t count) const;
  void wait_for_at_least(std::uint32_t count) const;

 private:
  void wait_until(const std::function<bool(std::uint32_t)>& holds) const;

  std::atomic<std::uint32_t>* value_;
};

}  // namespace lrun::detail::testing
