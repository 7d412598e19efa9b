#include "runtime/launch/rank_errors.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "base/split.h"

namespace lrun::detail {
namespace {

constexpr std::size_t kMostTailBytes = 16 * 1024;
constexpr std::size_t kMostInPipe =
    1024 * 1024;  // so that an orphan that goes on writing cannot hold up the supervisor

}  // namespace

RankErrors::RankErrors(ErrorRelay& relay) : relay_(relay) {
  Pipe pipe = make_pipe();
  read_ = std::move(pipe.read);
  write_ = std::move(pipe.write);
  set_nonblocking(read_.get());
}

void RankErrors::begin(EventLoop& loop) {
  write_.reset();
  loop_ = &loop;
  watch();
}

void RankErrors::watch() {
  watch_ = loop_->on_readable(read_.get(), [this] {
    (void)read_some();
    if (relay_.blocked()) watch_.cancel();
  });
}

void RankErrors::resume() {
  if (loop_ != nullptr && !watch_.armed()) watch();
}

void RankErrors::drain() {
  for (std::size_t before = read_bytes_; loop_ != nullptr && read_bytes_ - before < kMostInPipe;) {
    if (!read_some()) return;
  }
}

/// \return false when there is nothing more, now or for ever.
bool RankErrors::read_some() {
  std::array<char, 4096> buffer;
  const ssize_t count = ::read(read_.get(), buffer.data(), buffer.size());
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return false;
  if (count <= 0) {
    watch_.cancel();
    loop_ = nullptr;
    return false;
  }
  const std::string_view bytes(buffer.data(), static_cast<std::size_t>(count));
  read_bytes_ += bytes.size();
  relay_.write(bytes);
  tail_ += bytes;
  if (tail_.size() > kMostTailBytes) tail_.erase(0, tail_.size() - kMostTailBytes / 2);
  return true;
}

std::vector<std::string> RankErrors::last_lines() const { return split_lines(tail_); }

}  // namespace lrun::detail
