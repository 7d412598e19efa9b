#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "process/exit_status.h"
#include "remote/node_frames.h"

namespace lrun::launcher {

/// A connection that a relay is to make. Connections have numbers that the head gives, each once.
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

/// Empty for what is none.
std::optional<HostStart> decode_host_start(std::string_view payload);
std::optional<HostFrame> decode_host_frame(std::string_view payload);
std::optional<HostEnd> decode_host_end(std::string_view payload);

}  // namespace lrun::launcher
