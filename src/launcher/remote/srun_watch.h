#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/environment.h"
#include "base/event_loop.h"
#include "base/fd.h"

namespace lrun::launcher {

/// Tells the launchers of a step which port of its starter's they can watch.
inline constexpr const char* kSrunPort = "LRUN_SRUN_PORT";

/// Where srun, which lrun became, can be watched from the nodes of its step.
struct SrunPlace {
  std::string address;  ///< numeric
  std::uint16_t port = 0;

  bool operator==(const SrunPlace&) const = default;
};

/// What kSrunPort and Slurm's own variables say; empty: srun was not started by lrun, or it cannot be known.
std::optional<SrunPlace> srun_place(const Environment& environment);

/// A listening socket that stays open until this process, and whatever it executes and forks, is gone: nobody accepts
/// its connections, which the kernel makes and, then, breaks. So srun needs not know of it, and no death of it is too
/// sudden. \throws std::system_error
Fd open_socket_for_srun();

/// Notices that srun is gone. Slurm lets a step go on whose srun and srun's own helper process are killed at once, and
/// nobody would hear of it any more.
class SrunWatch {
 public:
  /// \param gone  is called once, when the connection to `place` has broken and is then refused: nobody listens there
  /// any more. Where srun was never reached (a firewall) or does not answer (a network that is cut), it is not: a step
  /// must not end for that. `loop` must outlive this.
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
