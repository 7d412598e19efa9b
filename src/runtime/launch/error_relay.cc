#include "runtime/launch/error_relay.h"

#include <cerrno>
#include <utility>

namespace lrun::detail {

void ErrorRelay::write(std::string_view bytes) {
  const bool was_blocked = blocked();
  waiting_ += bytes;
  if (!was_blocked) flush();
}

void ErrorRelay::flush() {
  std::size_t gone = 0;
  while (gone < waiting_.size()) {
    const long count = console_.write_some(std::string_view(waiting_).substr(gone));
    if (count == -EAGAIN) break;
    gone = count > 0 ? gone + static_cast<std::size_t>(count) : waiting_.size();
  }
  waiting_.erase(0, gone);
  if (blocked()) {
    if (!watch_.armed()) watch_ = loop_.on_writable(console_.pollable(), [this] { flush(); });
    return;
  }
  if (!watch_.armed()) return;
  watch_.cancel();
  if (on_room_) on_room_();
}

}  // namespace lrun::detail
