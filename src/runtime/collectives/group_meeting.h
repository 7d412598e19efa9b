#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "runtime/collectives/group_options.h"
#include "runtime/collectives/peer_watch.h"
#include "runtime/collectives/store_client.h"

namespace lrun {

/// How the ranks of a group meet in the store before they share anything else: rounds in which every rank says a line,
/// rank 0 hears all of them and answers all with one line.
///
/// A store may be older than this attempt (torchrun keeps one over all attempts), so that what stands under a rank's
/// name may come from a process that is gone. Every process therefore takes part under a random number, and rank 0
/// counts a rank as present only when it has answered to that number.
///
/// Threads  one at a time. Failure  as StoreClient; ranks that do not come are named in CollectiveTimeout, those
/// that end in PeerLost.
class GroupMeeting {
 public:
  /// Returns when all ranks are there.
  explicit GroupMeeting(const GroupOptions& options);

  /// Says that the group has come about: the next one of that name in this process meets apart from it. An attempt that
  /// fails counts on no rank, so that the ranks meet again even if only some of them noticed.
  static void note_made(const GroupOptions& options);

  /// Rank 0's random number: the same on all ranks, and of no other group.
  [[nodiscard]] std::uint64_t identity() const { return identity_; }

  /// From now on a rank that has ended without a word ends the wait for it. pids[r] names rank r's process in messages.
  /// `peers` outlives the last exchange().
  void watch(const PeerWatch& peers, const std::vector<pid_t>& pids);

  /// One round. `decide` runs on rank 0 only, with what the ranks said in their order. \return  its answer.
  std::string exchange(const std::string& line,
                       const std::function<std::string(const std::vector<std::string>&)>& decide);

 private:
  void gather();
  [[nodiscard]] bool has_answered(int rank);
  void join();
  [[nodiscard]] std::string hear(int rank, const std::string& key);
  [[nodiscard]] std::string key(std::uint64_t number, const std::string& what) const;
  [[noreturn]] void time_out(const std::vector<int>& missing) const;

  const GroupOptions options_;
  const SteadyTime deadline_;
  const std::string prefix_;
  StoreClient store_;
  const std::uint64_t number_;          // this process
  std::uint64_t identity_ = 0;          // rank 0's
  std::vector<std::uint64_t> members_;  // by rank; on rank 0 only
  const PeerWatch* peers_ = nullptr;    // not owned; null: nobody knows yet who they are
  std::vector<pid_t> pids_;
  int round_ = 0;
};

}  // namespace lrun
