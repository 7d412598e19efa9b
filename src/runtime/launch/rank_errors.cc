#include "runtime/launch/rank_errors.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "base/split.h"

namespace lrun {
namespace {

constexpr std::size_t kMostTailBytes = 16 * 1024;

}  // namespace

RankErrors::RankErrors() {
  Pipe pipe = make_pipe();
  read_ = std::move(pipe.read);
  write_ = std::move(pipe.write);
  set_nonblocking(read_.get());
}

void RankErrors::begin(EventLoop& loop) {
  write_.reset();
  watch_ = loop.on_readable(read_.get(), [this] { read_some(); });
}

void RankErrors::drain() {
  while (watch_.armed() && read_some()) {
  }
}

/// \return false when there is nothing more, now or for ever.
bool RankErrors::read_some() {
  std::array<char, 4096> buffer;
  const ssize_t count = ::read(read_.get(), buffer.data(), buffer.size());
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return false;
  if (count <= 0) {
    watch_.cancel();
    return false;
  }
  const std::string_view bytes(buffer.data(), static_cast<std::size_t>(count));
  (void)write_all(STDERR_FILENO, std::string_view(bytes.data(), bytes.size()));  // nobody may be there to read it
  tail_ += bytes;
  if (tail_.size() > kMostTailBytes) tail_.erase(0, tail_.size() - kMostTailBytes / 2);
  return true;
}

std::vector<std::string> RankErrors::last_lines() const { return split_lines(tail_); }

}  // namespace lrun
