#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/event_loop.h"
#include "process/spawn.h"
#include "remote/host_link.h"
#include "remote/node_frames.h"
#include "remote/relay_frames.h"

namespace lrun::launcher {

/// The connections of a relay: of a lrun on some host that connects the head to further hosts, and to the launcher of
/// its own one. It passes frames on and does not look into them. One thread.
class HostRelay {
 public:
  /// A frame for the head.
  using Tell = std::function<void(NodeFrame::Kind kind, const std::string& payload)>;

  HostRelay(EventLoop& loop, const SpawnDefaults& defaults, Tell tell);
  HostRelay(const HostRelay&) = delete;
  HostRelay& operator=(const HostRelay&) = delete;

  /// One of the frames to a relay; others mean nothing.
  void take(const NodeFrame& frame);
  /// Stops reading what hosts say, or goes on: for a head that takes no more.
  void pause(bool paused);
  /// All hosts see the end of their input, which is to them the head's.
  void end_inputs();
  [[nodiscard]] bool empty() const { return links_.empty(); }

 private:
  void start(const HostStart& start);
  void connect(const HostStart& start);
  void pass_on(int number, const NodeFrame& frame);
  void hang_up(int number);

  EventLoop& loop_;
  SpawnDefaults defaults_;
  Tell tell_;
  std::string own_program_;  ///< read once it is needed, and kept for as long as connections send it
  std::map<int, std::unique_ptr<HostLink>> links_;
  /// A connection that is told to end, until it is killed.
  struct Closed {
    std::unique_ptr<HostLink> link;
    EventLoop::Timer limit;
  };
  std::map<int, Closed> closed_;
  bool paused_ = false;
};

}  // namespace lrun::launcher
