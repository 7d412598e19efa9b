#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/event_loop.h"
#include "process/spawn.h"
#include "remote/frames.h"
#include "remote/host_link.h"

namespace lrun::launcher {

/// The connections of a relay: an lrun on a host that connects the head to further hosts, and to the launcher of its
/// own one. It passes frames on and does not look into them. One thread.
class HostRelay {
 public:
  /// A frame for the head.
  using Send = std::function<void(NodeFrame::Kind kind, const std::string& payload)>;

  HostRelay(EventLoop& loop, const SpawnDefaults& defaults, Send send);
  HostRelay(const HostRelay&) = delete;
  HostRelay& operator=(const HostRelay&) = delete;

  /// Obeys one of the frames to a relay; other frames have no effect.
  void handle(const NodeFrame& frame);
  /// Stops reading from hosts, or goes on: for a head that is slow.
  void pause(bool paused);
  /// Closes the inputs of all hosts: to them that is the end of the head.
  void end_inputs();
  [[nodiscard]] bool empty() const { return links_.empty(); }

 private:
  void start(const HostStart& start);
  void connect(const HostStart& start);
  void pass_on(int number, const NodeFrame& frame);
  void close_link(int number);

  EventLoop& loop_;
  SpawnDefaults defaults_;
  Send send_;
  std::string own_program_;  ///< its bytes, read when first needed and kept, as connections send from it
  std::map<int, std::unique_ptr<HostLink>> links_;
  /// A connection whose input is closed. It is killed when the limit has passed.
  struct Closed {
    std::unique_ptr<HostLink> link;
    EventLoop::Timer limit;
  };
  std::map<int, Closed> closed_;
  bool paused_ = false;
};

}  // namespace lrun::launcher
