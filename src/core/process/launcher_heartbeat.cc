#include "process/launcher_heartbeat.h"

#include <algorithm>
#include <utility>

namespace lrun::inline core {

LauncherHeartbeat::LauncherHeartbeat(EventLoop& loop, Duration heartbeat, std::function<void()> note)
    : loop_(loop), interval_(heartbeat / HeartbeatWatch::kStepsPerHeartbeat), note_(std::move(note)) {
  go_on();
}

void LauncherHeartbeat::go_on() {
  note_();
  next_ = loop_.after(interval_, [this] { go_on(); });
}

bool HeartbeatWatch::look(SteadyTime last, SteadyTime now) {
  const bool stood_still = now - due_ > step_;
  const SteadyTime first = last + kFirstLook * step_;
  silent_looks_ = now < first || stood_still ? 0 : silent_looks_ + 1;
  due_ = std::max(first, now + step_);
  return silent_looks_ >= kLooks;
}

}  // namespace lrun::inline core
