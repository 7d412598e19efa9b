#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/duration.h"

namespace lrun::launcher {

/// What the launcher on a node writes before anything else. What its host prints before (a banner, a login script) is
/// skipped.
inline constexpr std::string_view kNodeGreeting{"\0lrun-node/1\n", 13};

/// One message between the lrun that somebody typed, which starts a launcher on every host, and one of these.
struct NodeFrame {
  enum class Kind : char {
    // To the node.
    kOrder = 'o',     ///< what to do: a NodeOrder
    kGo = 'g',        ///< do it: a NodeGo
    kSignal = 's',    ///< somebody sent this signal: its number
    kCloseOut = 'c',  ///< nobody reads the workers' stdout any more
    kAlive = 'a',     ///< somebody is here; sent every kAliveInterval while a host is elsewhere
    kPaused = 'p',    ///< the head is about to be suspended: silence until its next frame means nothing
    // To a relay (relay_frames.h).
    kStartHost = 'S',   ///< start a connection to a further lrun: a HostStart
    kToHost = 't',      ///< pass this on to it: a HostFrame
    kHangUpHost = 'h',  ///< end that connection: its number
    // From the node.
    kAnswer = 'r',    ///< it can do it: a NodeReady
    kRefusal = 'f',   ///< it cannot: why, in words
    kOut = 'O',       ///< bytes of the workers' stdout
    kErr = 'E',       ///< bytes of their stderr
    kJobWords = 'J',  ///< lrun's own words about the job, which all nodes say
    kOwnWords = 'N',  ///< lrun's own words about this node
    kBegun = 'B',     ///< the node has met the others
    kEnded = 'X',     ///< its launcher has ended: a signal's number and the exit code, '0 7'
    // From a relay.
    kFromHost = 'F',   ///< what such a lrun says: a HostFrame
    kHostMoves = 'T',  ///< it has not answered yet, and something moves (a copy of lrun): its number
    kHostEnded = 'Y',  ///< the connection to it has ended: a HostEnd
  };
  Kind kind = Kind::kOrder;
  std::string payload;

  bool operator==(const NodeFrame&) const = default;
};

/// How often the head says that it is here, and how long it may be silent before a node takes it for gone.
inline constexpr Duration kAliveInterval{5'000};
inline constexpr Duration kMostSilence{60'000};

/// The frame as bytes. `payload` has at most kMostFrameBytes.
std::string encode(NodeFrame::Kind kind, std::string_view payload);

inline constexpr std::size_t kMostFrameBytes = std::size_t{16} * 1024 * 1024;

/// Cuts a stream of bytes into frames. A value; keeps at most one frame.
class NodeFrameReader {
 public:
  /// \param greeting  frames begin behind it; empty: at once.
  explicit NodeFrameReader(std::string_view greeting = {}) : greeting_(greeting) {}

  void take(std::string_view bytes);
  /// The next whole frame.
  std::optional<NodeFrame> next();

  /// The greeting has come, or none is waited for.
  [[nodiscard]] bool greeted() const { return greeting_.empty(); }
  /// What came is no frame, and never will be.
  [[nodiscard]] bool broken() const { return broken_; }

 private:
  std::string_view greeting_;
  std::string bytes_;
  std::size_t begin_ = 0;  ///< of what next() has not given
  bool broken_ = false;
};

/// One value that was given for an option, as the head read it.
struct CarriedValue {
  std::string option;  ///< the long name
  std::string text;
  int source = 0;
  std::string origin;
  std::string place;
  std::string ranks;

  bool operator==(const CarriedValue&) const = default;
};

/// What the launcher of a host is to do: all that its own host would otherwise decide.
struct NodeOrder {
  std::string version;                   ///< of lrun; the other end's has to be the same
  int compat = 0;                        ///< whose defaults hold, as the number of a Compat
  std::vector<CarriedValue> values;      ///< of the options
  std::vector<std::string> command;      ///< PROGRAM and its arguments
  std::vector<std::string> environment;  ///< NAME=VALUE, besides what the host has
  std::string folder;                    ///< to run in
  bool needs_folder = true;              ///< else it is only tried
  std::string name;                      ///< of the node
  std::vector<std::string> nodes;        ///< names of all of them, by node rank
  int node_rank = 0;
  std::string devices;  ///< of this host; empty: as the options say
  std::string devices_origin;
  std::string run_name;
  std::string secret;  ///< LRUN_JOB_SECRET
  int port = 0;        ///< node rank 0 listens here; 0: on a free one
  bool colour = false;
  int most_silence = 0;  ///< milliseconds without a frame after which the head is gone; 0: any time

  bool operator==(const NodeOrder&) const = default;
};

std::string encode(const NodeOrder& order);
/// The version of lrun that gave an order, whatever else another version puts into one. Empty for what is no order.
std::string version_of_order(std::string_view bytes);
/// Empty for what is no order.
std::optional<NodeOrder> decode_order(std::string_view bytes);

/// What a node answers when it can follow its order.
struct NodeReady {
  int port = 0;             ///< that node rank 0 listens on
  std::string own_address;  ///< numeric, where the head reached it; empty: unknown
  std::string head_address;
  std::string machine;  ///< machine_identity(); empty: not known

  bool operator==(const NodeReady&) const = default;
};

std::string encode(const NodeReady& ready);
std::optional<NodeReady> decode_ready(std::string_view bytes);

/// What a node has to know of the others, once all have answered.
struct NodeGo {
  int port = 0;                       ///< where the launchers meet
  std::string address;                ///< the same, as this node reaches it
  std::vector<std::string> one_host;  ///< names of the nodes that are one machine with this one, its own among them

  bool operator==(const NodeGo&) const = default;
};

std::string encode(const NodeGo& go);
std::optional<NodeGo> decode_go(std::string_view bytes);

}  // namespace lrun::launcher
