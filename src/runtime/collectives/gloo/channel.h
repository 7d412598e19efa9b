#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "runtime/collectives/bootstrap/group_options.h"
#include "runtime/collectives/bootstrap/peer_watch.h"
#include "runtime/collectives/bootstrap/process_identity.h"
#include "runtime/collectives/common/call.h"
#include "runtime/collectives/common/failure.h"
#include "runtime/collectives/common/perform.h"
#include "runtime/collectives/common/watchdog.h"
#include "runtime/collectives/gloo/link.h"

namespace lrun::detail {

/// One rank's knowledge of the ranks of its group.
struct GlooPeers {
  std::vector<ProcessIdentity> processes;  ///< By rank.
  PeerWatch watch;                         ///< Of those on this host.
};

/// Memory to send to a peer, or to receive into.
struct GlooPiece {
  int peer = 0;
  void* data = nullptr;  ///< Only read when `sends`.
  std::size_t bytes = 0;
  bool sends = false;
};

/// Exchanges memory between the ranks of a gloo group, compares their calls, and distributes failures.
///
/// Before each operation every rank sends its call to every other. So ranks that differ, are missing or have ended are
/// known by name before any data moves. A failing rank sends the reason to all others and closes its connections; a
/// rank that waits for it reads the reason, fails with the same and passes it on.
///
/// Threads  begin(), agree(), start(), finish() and end() on one thread at a time; fail() and failure() on any.
class GlooChannel {
 public:
  class Batch;

  GlooChannel(std::unique_ptr<GlooLink> link, GlooPeers peers, const GroupOptions& options);
  ~GlooChannel();  ///< After leave().
  GlooChannel(const GlooChannel&) = delete;
  GlooChannel& operator=(const GlooChannel&) = delete;

  /// Starts a call: its deadline runs from now, and errors name it, or the larger operation `shown`.
  void begin(std::uint64_t sequence, const Part& shown);
  void end();
  /// Returns when all ranks have made the same call. \throws the group's failure.
  void agree(const Call& call);
  /// Starts to move the pieces (those of no bytes are left out). Their memory has to outlive the batch.
  /// \throws the group's failure.
  Batch start(std::span<const GlooPiece> pieces);
  /// Returns when all has moved. \throws the group's failure.
  void finish(Batch& batch);

  /// Fails the group, unless it has failed already, and notifies the others. \return  the group's first failure.
  Failure fail(const Failure& failure);
  [[nodiscard]] std::optional<Failure> failure();
  /// Notifies the others that this rank makes no further calls.
  void leave() noexcept;

 private:
  /// The call of a rank in its format on the wire.
  struct Posted {
    std::uint64_t sequence = ~std::uint64_t{0};  ///< None.
    Call call;
  };
  /// The last message of a rank: its failure, or that it left.
  struct LeaveMessage {
    static constexpr std::uint32_t kLeft = 0xFFFFFFFF;
    std::uint32_t kind = 0;  ///< Failure::Kind, or kLeft
    std::array<char, 508> text{};
  };
  /// The next call of a peer, awaited before it comes.
  struct NextCall {
    Posted posted;
    std::unique_ptr<GlooMessage> message;  // into `posted`
  };

  [[nodiscard]] int world_size() const { return static_cast<int>(peers_.processes.size()); }
  [[nodiscard]] Batch start_on(GlooLane lane, std::span<const GlooPiece> pieces);
  [[nodiscard]] bool wait_for(GlooMessage& message, int peer);
  void listen(int peer);
  [[nodiscard]] std::vector<int> stop_listening();
  void send_leave(std::uint32_t kind, const std::string& text);
  void expire();
  void look_at_awaited();
  [[nodiscard]] bool is_connected(int peer);
  [[noreturn]] void raise_loss(int peer);
  [[noreturn]] void time_out(const std::vector<int>& missing, bool called);
  [[nodiscard]] bool has_ended(int peer) const;
  [[nodiscard]] std::optional<Failure> received_leave(int peer);
  [[nodiscard]] std::string name_process(int peer) const;
  [[nodiscard]] std::string name_call() const { return detail::name_call(shown_.operation, shown_.sequence); }

  const GroupOptions options_;
  const GlooPeers peers_;
  Part shown_;
  std::uint64_t sequence_ = 0;

  std::mutex mutex_;
  std::optional<Failure> failure_;
  SteadyTime deadline_;
  bool running_ = false;  // an operation, until deadline_
  bool expired_ = false;  // the deadline has passed
  std::set<GlooMessage*> in_flight_;
  static constexpr int kNobody = -1;
  int awaited_ = kNobody;  // the peer that wait_for() waits for
  int lost_ = kNobody;     // the peer has ended, but gloo did not notice
  int ended_looks_ = 0;    // the number of looks in a row at which its process had ended

  LeaveMessage outbox_;
  std::vector<LeaveMessage> inbox_;                           // by rank
  std::unique_ptr<GlooLink> link_;                            // after the memory of its messages
  std::vector<NextCall> next_calls_;                          // by rank
  std::vector<std::unique_ptr<GlooMessage>> leave_messages_;  // to the inbox, by rank
  std::mutex leave_messages_mutex_;                           // one look at a time
  Watchdog watchdog_;                                         // last: its thread uses the others
};

/// Pieces in flight. The destructor cancels those that have not arrived.
class GlooChannel::Batch {
 public:
  Batch() = default;
  Batch(Batch&& other) noexcept = default;
  Batch& operator=(Batch&& other) noexcept;
  ~Batch() { drop(); }

 private:
  friend class GlooChannel;
  void drop() noexcept;

  struct Entry {
    int peer = 0;
    std::unique_ptr<GlooMessage> message;
  };
  GlooChannel* channel_ = nullptr;
  std::vector<Entry> entries_;
};

}  // namespace lrun::detail
