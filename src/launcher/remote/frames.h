#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/duration.h"
#include "process/exit_status.h"

namespace lrun::launcher {

// The protocol between the head, the lrun that a person typed, and the lrun that it starts on each host: frames on the
// standard streams of ssh. A frame is a letter, four bytes of length, and a payload. Pure.

/// The launcher on a node writes this before anything else. Output that comes before it (a banner, a login script) is
/// skipped.
inline constexpr std::string_view kNodeHandshake{"\0lrun-node/1\n", 13};

/// One message between the head and a node, or a relay.
struct NodeFrame {
  enum class Kind : char {
    // To the node.
    kOrder = 'o',      ///< start the job's part on this node: a NodeOrder
    kGo = 'g',         ///< all nodes have answered: a NodeGo
    kSignal = 's',     ///< the head received this signal: its number
    kCloseOut = 'c',   ///< the reader of the workers' stdout is gone
    kAsk = 'q',        ///< a Question about its ranks
    kHeartbeat = 'a',  ///< sent every kHeartbeatInterval while a host is elsewhere
    kPaused = 'p',     ///< the head is about to be suspended: its silence until the next frame means nothing
    // To a relay.
    kStartHost = 'S',  ///< start a connection to a further lrun: a HostStart
    kToHost = 't',     ///< pass this on to it: a HostFrame
    kCloseHost = 'h',  ///< end that connection: its number
    // From the node.
    kAnswer = 'r',    ///< it can follow the order: a NodeReady
    kRefusal = 'f',   ///< it cannot: the reason as text
    kOut = 'O',       ///< bytes of the workers' stdout
    kErr = 'E',       ///< bytes of their stderr
    kJobWords = 'J',  ///< a message of lrun about the job, which all nodes send
    kOwnWords = 'N',  ///< a message of lrun about this node
    kBegun = 'B',     ///< the node has joined the rendezvous; its workers run, where it is alone
    kEnded = 'X',     ///< its launcher has ended: a signal's number and the exit code, '0 7'
    kTold = 'A',      ///< its answer
    // From a relay.
    kFromHost = 'F',      ///< a frame of such a lrun: a HostFrame
    kHostProgress = 'T',  ///< it has not answered yet, but takes bytes of a copy of lrun: its number
    kHostEnded = 'Y',     ///< the connection to it has ended: a HostEnd
  };
  Kind kind = Kind::kOrder;
  std::string payload;

  bool operator==(const NodeFrame&) const = default;
};

/// How often the head sends a heartbeat, and how long it may be silent before a node takes it for gone.
inline constexpr Duration kHeartbeatInterval{5'000};
inline constexpr Duration kMostSilence{60'000};

inline constexpr std::size_t kMostFrameBytes = std::size_t{16} * 1024 * 1024;

/// The frame as bytes. `payload` has at most kMostFrameBytes.
std::string encode(NodeFrame::Kind kind, std::string_view payload);

/// Cuts a stream of bytes into frames. A value; keeps at most one frame.
class NodeFrameReader {
 public:
  /// \param handshake  frames begin behind it; empty: at once.
  explicit NodeFrameReader(std::string_view handshake = {}) : handshake_(handshake) {}

  void feed(std::string_view bytes);
  /// The next whole frame.
  std::optional<NodeFrame> next();

  /// The handshake has come, or none is waited for.
  [[nodiscard]] bool has_handshake() const { return handshake_.empty(); }
  /// The stream holds no frames, and will hold none.
  [[nodiscard]] bool broken() const { return broken_; }

 private:
  std::string_view handshake_;
  std::string bytes_;
  std::size_t begin_ = 0;  ///< of the bytes that next() has not given
  bool broken_ = false;
};

/// The value of one option, as the head read it.
struct CarriedValue {
  std::string option;  ///< the long name
  std::string text;
  int source = 0;
  std::string origin;
  std::string place;
  std::string ranks;

  bool operator==(const CarriedValue&) const = default;
};

/// All that the launcher of a host would otherwise decide by itself.
struct NodeOrder {
  std::string version;                   ///< of lrun; the other end's has to be the same
  int compat = 0;                        ///< whose defaults hold, as the number of a Compat
  std::vector<CarriedValue> values;      ///< of the options
  std::vector<std::string> command;      ///< PROGRAM and its arguments
  std::vector<std::string> environment;  ///< NAME=VALUE, besides that of the host
  std::string folder;                    ///< to run in
  bool needs_folder = true;              ///< false: another folder will do
  std::string name;                      ///< of the node
  std::vector<std::string> nodes;        ///< names of all of them, by node rank
  int node_rank = 0;
  std::string devices;  ///< of this host; empty: as the options say
  std::string devices_origin;
  std::string run_id;    ///< of the job, made by the head
  std::string run_name;  ///< empty: the user has not named it
  std::string secret;    ///< LRUN_JOB_SECRET
  int port = 0;          ///< node rank 0 listens here; 0: on a free one
  bool colour = false;
  int most_silence = 0;  ///< milliseconds without a frame after which the head is gone; 0: any time

  bool operator==(const NodeOrder&) const = default;
};

std::string encode(const NodeOrder& order);
/// The version of lrun that gave an order, also where another version adds fields. Empty for bytes that are no order.
std::string version_of_order(std::string_view bytes);
/// Empty for bytes that are no order.
std::optional<NodeOrder> decode_order(std::string_view bytes);

/// The answer of a node that can follow its order.
struct NodeReady {
  int port = 0;             ///< that node rank 0 listens on
  std::string own_address;  ///< numeric, where the head reached it; empty: unknown
  std::string head_address;
  std::string machine;  ///< machine_identity(); empty: not known

  bool operator==(const NodeReady&) const = default;
};

std::string encode(const NodeReady& ready);
std::optional<NodeReady> decode_ready(std::string_view bytes);

/// Facts about the other nodes, once all have answered.
struct NodeGo {
  int port = 0;                       ///< of the rendezvous
  std::string address;                ///< the same, as this node reaches it
  std::vector<std::string> one_host;  ///< names of the nodes that are one machine with this one, its own among them

  bool operator==(const NodeGo&) const = default;
};

std::string encode(const NodeGo& go);
std::optional<NodeGo> decode_go(std::string_view bytes);

/// A connection that a relay is to make. The head numbers the connections, and gives each number once.
struct HostStart {
  int number = 0;
  std::vector<std::string> command;  ///< empty: the launcher of the relay's own host
  bool copies = false;               ///< the command reads lrun itself from its input first

  bool operator==(const HostStart&) const = default;
};

/// A frame of the lrun at the other end of a relay's connection, or for it.
struct HostFrame {
  int number = 0;
  std::string bytes;  ///< of the whole frame

  bool operator==(const HostFrame&) const = default;
};

/// How the command of a relay's connection ended.
struct HostEnd {
  int number = 0;
  ExitStatus status;
  std::string last_line;  ///< that it has printed

  bool operator==(const HostEnd&) const = default;
};

std::string encode(const HostStart& start);
std::string encode(const HostEnd& end);
/// The payload of a HostFrame for a frame of this kind.
std::string frame_of_host(int number, NodeFrame::Kind kind, std::string_view payload);

/// Empty for bytes that are no such payload.
std::optional<HostStart> decode_host_start(std::string_view payload);
std::optional<HostFrame> decode_host_frame(std::string_view payload);
std::optional<HostEnd> decode_host_end(std::string_view payload);

}  // namespace lrun::launcher
