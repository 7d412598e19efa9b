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
using LauncherId = std::uint64_t;

/// What launchers of one job say to each other. `text` is for the layers above and is not looked at here: how a run
/// ends travels as data.
struct LauncherMessage {
  enum class Kind {
    // from a launcher to the holder of the meeting
    kJoin,    ///< `join`: the first message of a connection; `resumes`: it took part in `round`, and goes on
    kInvite,  ///< in kJoin's place: the job of `join` is met at the address and the meeting port of that, since `round`
    kHeartbeat,  ///< still there; `sent_ns` is the sender's steady clock
    kStopping,   ///< `text`: why our workers are being stopped in `round`
    kBegun,      ///< `round` has begun here, as kBegin said
    kReport,     ///< `text`: what our workers of `round` came to; none of them is left
    kReady,    ///< for `round`, the next one; `text` and `attempt` are the same on all nodes and are passed on with it
    kDropOut,  ///< `text`: why we leave the job, which may go on without us
    kLeaderless,  ///< nothing is heard of the holder any more: we look for another
    kLeave,       ///< we are done with the job; `text`: what it came to, empty when it succeeded
    // from the holder to a launcher
    kRejected,  ///< `text`: why not, `hint`: what to do about it; the connection is closed, but that of an invitation
    kRedirect,  ///< the job is met at `address` and `port`; the connection is closed
    /// No round can begin here: `text` says why. Who was sent here looks at the endpoint again; the connection is
    /// closed.
    kNoRendezvous,
    kHasBegun,  ///< answer to kInvite: a job of this name has begun here
    kWaiting,   ///< `text`: who is there and who is missing
    /// `text`: the job runs, and takes this node in when there is a place; empty: it was said, and `successors` may
    /// hold the meeting of a later round.
    kSpare,
    kBegin,         ///< `membership` of a new round
    kSettled,       ///< all members of `round` know that it has begun; told where kBegin has not said so
    kHeartbeatAck,  ///< answer to kHeartbeat: `sent_ns` is that one's, `steady_ns` and `wall_ns` are the holder's
                    ///< clocks
    kStop,          ///< `text` as some launcher said it with kStopping; the first of the round
    kLost,          ///< `node` is gone: `text` says how we know; it was last heard at `steady_ns` of the holder's clock
    kResize,        ///< `node` is there: `text` says so; the round stops and the next one begins with it
    kOver,          ///< `round` is over everywhere: `text` is what was made of all reports
    kEnded,         ///< the job is over for this node: `text` says why; empty: it succeeded without it
  };

  Kind kind = Kind::kHeartbeat;
  int round = 0;
  std::string text = {};
  std::string hint = {};  ///< for people; empty: nothing special
  std::string node = {};
  std::string spare = {};  ///< of kLost: the node that is to take its place; empty: none
  std::int64_t sent_ns = 0;
  std::int64_t steady_ns = 0;
  std::int64_t wall_ns = 0;
  int attempt = 0;       ///< restarts used so far
  bool settled = false;  ///< of kBegin: members could not go on from the round before, also where some know only it
  bool resumes = false;  ///< of kJoin: the launcher belongs to a job whose holder it has lost; kReady follows
  std::optional<int> node_rank = {};  ///< of kJoin, with resumes: in that round; a vote for who holds the meeting now
  bool was_spare = false;             ///< of kJoin: the launcher waited for a place in such a job
  int port = 0;  ///< on which this node would host the workers' store of the round; 0: as it said when it joined
  std::string address = {};                ///< numeric
  std::vector<Successor> successors = {};  ///< who may hold the meeting next, for who is in no round
  std::optional<JoinRecord> join = {};
  std::optional<Membership> membership = {};

  bool operator==(const LauncherMessage&) const = default;
};

std::string to_json(const LauncherMessage& message);
std::optional<LauncherMessage> launcher_message_from_json(std::string_view json);

/// The longest message that is taken from a launcher, and from the holder, whose `text` may stand in JSON in JSON.
inline constexpr std::size_t kMostBytesFromLauncher = std::size_t{256} << 10U;
inline constexpr std::size_t kMostBytesFromLeader = std::size_t{1} << 20U;
/// The longest `text` of a report or a reason.
inline constexpr std::size_t kMostReportBytes = std::size_t{64} << 10U;

/// Appends a message as it travels: its length (32 bits, big end first), then JSON.
void append_message(std::string& out, const LauncherMessage& message);

/// A message for many launchers: what is equal for all of them is encoded once.
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
