#pragma once

#include <lrun/collectives.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/collectives/common/call_log.h"
#include "runtime/collectives/cuda_library.h"
#include "runtime/support/backend_ranks.h"

namespace lrun::test::stand_in {

/// In the place of the store and the processes of a group: ranks that are threads, with a device of the stand-in each.
class RankThreads {
 public:
  RankThreads(int world_size, std::chrono::milliseconds timeout);

  /// The rank's end of the group, over liblrun_cuda.so. It uses this object. \throws as the library.
  std::unique_ptr<Collectives> join(int rank);
  /// The rank's process has ended, as the others see it.
  void leave(int rank);
  [[nodiscard]] int world_size() const { return world_size_; }

 private:
  std::string share(int rank, const std::string& text);
  std::optional<std::string> ended_peer(int rank);
  std::optional<std::string> failure();
  void tell(const std::string& failure);

  const int world_size_;
  const std::chrono::milliseconds timeout_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string text_;  // of rank 0
  std::set<int> came_;
  std::set<int> left_;
  std::map<int, std::string> calls_;
  std::optional<std::string> failure_;
  std::vector<std::unique_ptr<detail::CallLog>> logs_;
};

/// As detail::testing::error_of(), with 'Error: ' before the text of an lrun::Error that is of no further kind.
std::string text_of_error(const std::function<void()>& function);

/// Runs `body` as every rank: a thread, whose current device is the rank. A rank that throws destroys its group and
/// leaves. \return  of each rank its text_of_error().
std::vector<std::string> run_on_stand_in(RankThreads& ranks, const detail::testing::RankBody& body);
std::vector<std::string> run_on_stand_in(int world_size, const detail::testing::RankBody& body,
                                         std::chrono::milliseconds timeout = std::chrono::seconds(20));

}  // namespace lrun::test::stand_in
