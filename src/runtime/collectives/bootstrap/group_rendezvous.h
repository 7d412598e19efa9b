#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "runtime/collectives/bootstrap/group_options.h"
#include "runtime/collectives/bootstrap/peer_watch.h"
#include "runtime/collectives/bootstrap/process_identity.h"
#include "runtime/collectives/bootstrap/store_client.h"
#include "runtime/collectives/common/failure.h"

namespace lrun::detail {

/// The rendezvous of the ranks of a group in the store, before they share anything else. In each round every rank sends
/// a line to rank 0, and rank 0 answers all of them with one line.
///
/// A store may be older than this attempt (torchrun keeps one over all attempts), so an entry under a rank's name may
/// come from a process that has ended. Every process therefore takes part under a random number, and rank 0 counts a
/// rank as present only after an answer with that number.
///
/// Threads  one at a time.
/// Failure  as StoreClient. Rank 0 watches all ranks that have registered. CollectiveTimeout names ranks that do not
///          come, PeerLost names a rank that ends, and rank 0 sends the same failure to all ranks that wait for its
///          answer. They in turn watch rank 0. A rank that comes after a failure waits for the next attempt.
class GroupRendezvous {
 public:
  /// Returns when all ranks have registered; on ranks other than 0 when rank 0 has.
  explicit GroupRendezvous(const GroupOptions& options);

  /// Records that the group was made: the next one of that name in this process uses other keys. An attempt that fails
  /// is counted on no rank, so that the ranks meet again even if only some of them noticed the failure.
  static void note_made(const GroupOptions& options);

  /// Rank 0's random number: the same on all ranks, different for every group.
  [[nodiscard]] std::uint64_t identity() const { return members_[0].number; }
  /// This process.
  [[nodiscard]] const ProcessIdentity& process() const { return self_.process; }

  /// The address at which other ranks may reach this process: see StoreClient::local_address().
  [[nodiscard]] std::string local_address() const { return store_.local_address(); }

  /// One round. `decide` runs on rank 0 only, with the lines of all ranks in their order. \return  its answer.
  std::string exchange(const std::string& line,
                       const std::function<std::string(const std::vector<std::string>&)>& decide);

 private:
  /// The process that takes part as a rank.
  struct Member {
    std::uint64_t number = 0;  // 0: nobody yet
    ProcessIdentity process;

    [[nodiscard]] std::string text() const;
    static Member parse(int rank, const std::string& text);
  };

  void gather();
  [[nodiscard]] bool admit(int rank);
  void join();
  void watch(int rank);
  [[nodiscard]] std::string hear(int rank, const std::string& key);
  [[nodiscard]] std::vector<int> who_is_missing(int silent);
  [[nodiscard]] std::optional<std::string> look_for(const std::string& key);
  [[nodiscard]] std::vector<int> ended_soon() const;
  [[nodiscard]] std::string key(std::uint64_t number, const std::string& what) const;
  [[nodiscard]] std::string answer_key(int rank) const;
  [[nodiscard]] std::string hear_answer();
  void require_all_alive();
  void wait_until_heard();
  [[noreturn]] void time_out(const std::vector<int>& missing);
  [[noreturn]] void fail(const Failure& failure);

  const GroupOptions options_;
  const SteadyTime deadline_;
  const std::string prefix_;
  StoreClient store_;
  const Member self_;
  std::vector<Member> members_;  // by rank: those that have come; ranks other than 0 know rank 0 only
  std::vector<int> watched_;     // ranks: the members but this one
  PeerWatch watch_;
  int round_ = 0;
};

/// An answer of rank 0 that repeats the lines of all ranks; base/split.h splits it again.
std::string join_lines(const std::vector<std::string>& lines);

}  // namespace lrun::detail
