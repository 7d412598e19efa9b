#include "process/launcher_beat.h"

#include <algorithm>
#include <utility>

namespace lrun::inline core {

LauncherBeat::LauncherBeat(EventLoop& loop, Duration heartbeat, std::function<void()> beat)
    : loop_(loop), interval_(heartbeat / BeatWatch::kStepsPerHeartbeat), beat_(std::move(beat)) {
  go_on();
}

void LauncherBeat::go_on() {
  beat_();
  next_ = loop_.after(interval_, [this] { go_on(); });
}

bool BeatWatch::look(SteadyTime beat, SteadyTime now) {
  const bool stood_still = now - due_ > step_;
  const SteadyTime first = beat + kFirstLook * step_;
  silent_looks_ = now < first || stood_still ? 0 : silent_looks_ + 1;
  due_ = std::max(first, now + step_);
  return silent_looks_ >= kLooks;
}

}  // namespace lrun::inline core
