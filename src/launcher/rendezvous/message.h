#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/join_record.h"
#include "rendezvous/membership.h"

namespace lrun::launcher {

/// Names one connection of a launcher for as long as the rendezvous is served; never used twice, and a later one is
/// larger.
using ConnectionId = std::uint64_t;

/// A message between a launcher and the leader of its job. `text` is for the layers above and is opaque here: how a run
/// ends travels as data. On the wire kinds and fields keep names of their own, which message.cc lists.
struct LauncherMessage {
  enum class Kind {
    // from a launcher to the leader
    kJoin,        ///< `join`: the first message of a connection; `resumes`: the launcher was in `round`, and goes on
    kInvite,      ///< in place of kJoin: the sender's job, in `round`, meets at the address and standby port of `join`
    kHeartbeat,   ///< `sent_ns` is the sender's steady clock
    kStopping,    ///< `text`: why the workers of this node are being stopped in `round`
    kBegun,       ///< `round` has begun on this node
    kReport,      ///< `text`: the report of this node about `round`; none of its workers is left
    kReady,       ///< for `round`, the next one; `text` and `attempt`, equal on all nodes, go on to its members
    kDropOut,     ///< `text`: why this node leaves the job, which may go on without it
    kLeaderless,  ///< this launcher hears nothing of the leader, and looks for another one
    kAsk,         ///< `text`: a question to all nodes of the round; the leader passes it on to the others
    kAnswer,      ///< answer of one of them: `text`; the leader passes it on to `asker`
    kLeave,       ///< this node is done with the job; `text`: the outcome, empty when the job succeeded
    // from the leader to a launcher
    kRejected,      ///< `text`: why, `hint`: what to do about it; ends the connection, but not that of an invitation
    kRedirect,      ///< the job meets at `address` and `port`; ends the connection
    kNoRendezvous,  ///< `text`: why no round can begin here; a launcher that was redirected here goes back
    kHasBegun,      ///< answer to kInvite: a job of this name has begun here
    kWaiting,       ///< `text`: which launchers are there and which are missing
    /// The job runs, and takes this node in when there is a place. `text` is for people, once. `successors` may lead it
    /// in a later round.
    kSpare,
    kBegin,         ///< `membership` of a new round
    kKnownToAll,    ///< all members of `round` know that it has begun; sent where kBegin is not `known_to_all`
    kHeartbeatAck,  ///< `sent_ns` as in the kHeartbeat, `steady_ns` and `wall_ns` are the leader's clocks
    kStop,          ///< `text` of the first kStopping of the round
    kLost,          ///< `node` is gone; `text`: how; `steady_ns`: its last sign of life on the leader's clock
    kResize,        ///< `node` has come; `text`: a line about it; the round stops and the next one begins with it
    kOver,          ///< `round` is over everywhere; `text` was made of all reports
    kEnded,         ///< the job is over for this node; `text`: why, empty: it succeeded without this node
  };

  Kind kind = Kind::kHeartbeat;
  int round = 0;
  std::string text = {};
  std::string hint = {};  ///< for people; empty: nothing special
  std::string node = {};
  std::string spare = {};  ///< of kLost: the node that takes the place of the lost one; empty: none
  std::int64_t sent_ns = 0;
  ConnectionId asker = 0;  ///< of kAsk and kAnswer, for the leader alone
  std::int64_t steady_ns = 0;
  std::int64_t wall_ns = 0;
  int attempt = 0;                    ///< restarts used so far
  bool known_to_all = false;          ///< of kBegin: no members can fail over from an earlier round any more
  bool resumes = false;               ///< of kJoin: the launcher belongs to a job whose leader is lost; kReady follows
  std::optional<int> node_rank = {};  ///< of kJoin, with `resumes`: in that round; its vote for the new leader
  bool was_spare = false;             ///< of kJoin: the launcher waited for a place in such a job
  int port = 0;  ///< of kRedirect; of kReady: of the workers' store, if this node hosts it; 0: as in its JoinRecord
  std::string address = {};                ///< numeric
  std::vector<FileOwner> keeps = {};       ///< of kReady: whose files in memory this node has copies of
  std::vector<Successor> successors = {};  ///< of kSpare: the nodes that may lead next
  std::optional<JoinRecord> join = {};
  std::optional<Membership> membership = {};

  bool operator==(const LauncherMessage&) const = default;
};

std::string to_json(const LauncherMessage& message);
std::optional<LauncherMessage> launcher_message_from_json(std::string_view json);

/// The longest message of a launcher, and of the leader, whose `text` may stand in JSON in JSON.
inline constexpr std::size_t kMostBytesFromLauncher = std::size_t{256} << 10U;
inline constexpr std::size_t kMostBytesFromLeader = std::size_t{1} << 20U;
/// The longest `text` of a report or a reason.
inline constexpr std::size_t kMostReportBytes = std::size_t{64} << 10U;

/// Appends a message as it travels: its length (32 bits, big end first), then JSON.
void append_message(std::string& out, const LauncherMessage& message);

/// A message for many launchers: the part that is equal for all of them is encoded once.
class EncodedMessage {
 public:
  explicit EncodedMessage(const LauncherMessage& message);

  /// As it travels; of a message without a membership.
  [[nodiscard]] std::string_view bytes() const { return bytes_; }
  /// With this Membership::self. They are there until the next call.
  std::string_view bytes_for(const Member& self);

 private:
  std::string json_;
  std::string bytes_;
};

/// Turns the bytes of one connection, behind its handshake, into messages, wherever they were cut. Memory grows with
/// the bytes that came.
class LauncherMessageDecoder {
 public:
  explicit LauncherMessageDecoder(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  void feed(std::string_view bytes) { bytes_.append(bytes); }

  /// One whole message; empty when more bytes are needed, or when the other end is refused.
  std::optional<LauncherMessage> next();

  /// Why the connection must be closed: one line; empty while all is well.
  [[nodiscard]] const std::string& refusal() const { return refusal_; }

 private:
  std::size_t most_bytes_;
  std::string bytes_;
  std::size_t taken_ = 0;
  std::string refusal_;
};

}  // namespace lrun::launcher
