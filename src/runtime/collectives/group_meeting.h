#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "runtime/collectives/group_options.h"
#include "runtime/collectives/store_client.h"

namespace lrun {

/// How the ranks of a group meet in the store before they share anything else: rounds in which every rank says a line,
/// rank 0 hears all of them and answers all with one line.
///
/// A store may be older than this attempt (torchrun keeps one over all attempts), so that what stands under a rank's
/// name may come from a process that is gone. Every process therefore takes part under a random number, and rank 0
/// counts a rank as present only when it has answered to that number.
///
/// Threads  one at a time. Failure  as StoreClient; ranks that do not come are named in CollectiveTimeout.
class GroupMeeting {
 public:
  /// Returns when all ranks are there.
  explicit GroupMeeting(const GroupOptions& options);

  /// Rank 0's random number: the same on all ranks, and of no other group.
  [[nodiscard]] std::uint64_t identity() const { return identity_; }

  /// One round. `decide` runs on rank 0 only, with what the ranks said in their order. \return  its answer.
  std::string exchange(const std::string& line,
                       const std::function<std::string(const std::vector<std::string>&)>& decide);

 private:
  void gather();
  [[nodiscard]] bool has_answered(int rank);
  void join();
  [[nodiscard]] std::string key(std::uint64_t number, const std::string& what) const;
  [[noreturn]] void time_out(const std::vector<int>& missing) const;

  const GroupOptions options_;
  const SteadyTime deadline_;
  const std::string prefix_;
  StoreClient store_;
  const std::uint64_t number_;          // this process
  std::uint64_t identity_ = 0;          // rank 0's
  std::vector<std::uint64_t> members_;  // by rank; on rank 0 only
  int round_ = 0;
};

}  // namespace lrun
