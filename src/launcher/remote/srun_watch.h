#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/environment.h"
#include "base/event_loop.h"
#include "base/fd.h"

namespace lrun::launcher {

/// The variable that tells the launchers of a step which port of its starter they can watch.
inline constexpr const char* kSrunPort = "LRUN_SRUN_PORT";

/// Where the lrun that waits for srun can be watched from the nodes of its step.
struct SrunPlace {
  std::string address;  ///< numeric
  std::uint16_t port = 0;

  bool operator==(const SrunPlace&) const = default;
};

/// As kSrunPort and Slurm's own variables give it. Empty: lrun did not start srun, or the variables do not tell.
std::optional<SrunPlace> srun_place(const Environment& environment);

/// A listening socket that stays open until this process is gone, which ends with srun. The kernel makes connections to
/// it, which are never accepted, and breaks them at that end. So no death is too sudden. \throws std::system_error
Fd open_socket_for_srun();

/// Notices that srun is gone. Where srun and its own helper process are killed at once, Slurm lets their step go on
/// unattended.
class SrunWatch {
 public:
  /// \param gone  called once, when the connection to `place` has broken and a new one is refused, which proves that
  /// the socket is closed. Not called where srun was never reached (a firewall) or does not answer (a network that is
  /// cut): a step must not end for that. `loop` must outlive this.
  SrunWatch(EventLoop& loop, SrunPlace place, std::function<void()> gone);

 private:
  void connect();
  void connecting_ended();
  void connection_broke();
  void not_connected(int error);

  EventLoop& loop_;
  SrunPlace place_;
  std::function<void()> gone_;
  bool reached_ = false;  ///< at least once
  int tries_ = 0;         ///< since it was connected
  Fd socket_;
  EventLoop::Watch watch_;
  EventLoop::Timer next_try_;
};

}  // namespace lrun::launcher
