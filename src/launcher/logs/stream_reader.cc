#include "logs/stream_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace lrun::launcher {
namespace {

constexpr std::size_t kReadBytes = std::size_t{256} * 1024;

/// How much a pipe can hold; an ended worker left at most as much in it.
std::size_t capacity_of(int fd) {
  const int bytes = ::fcntl(fd, F_GETPIPE_SZ);
  return bytes > 0 ? static_cast<std::size_t>(bytes) : std::size_t{1024} * 1024;
}

}  // namespace

StreamReader::StreamReader(EventLoop& loop, bool one_console, Events events)
    : one_console_(one_console),
      events_(std::move(events)),
      sets_{ReadableSet(
                loop, [this](void* tag) { return read_once(*static_cast<LogSource*>(tag)); },
                [this] { events_.turn_ended(LogStream::kOut); }),
            ReadableSet(
                loop, [this](void* tag) { return read_once(*static_cast<LogSource*>(tag)); },
                [this] { events_.turn_ended(LogStream::kErr); })} {}

void StreamReader::add(LogSource& source) { sets_[index_of(source.stream)].add(source.read_end.get(), &source); }

std::size_t StreamReader::read_once(LogSource& source) {
  if (!source.read_end) return 0;
  if (!buffer_) buffer_.reset(new char[kReadBytes]);  // touched only as far as it is used
  const ssize_t count = ::read(source.read_end.get(), buffer_.get(), kReadBytes);
  if (count > 0) {
    const auto bytes = static_cast<std::size_t>(count);
    bytes_read_ += bytes;
    events_.bytes(source, {buffer_.get(), bytes});
    return bytes;
  }
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  end(source);  // the end of a pipe, or EIO, which a terminal gives at its end
  return 0;
}

void StreamReader::read_rest(LogSource& source) {
  if (!source.read_end) return;
  const std::size_t most = capacity_of(source.read_end.get());
  const std::size_t turns = most / kReadBytes + 16;  // reads may be small, as the writes were
  for (std::size_t turn = 0; turn < turns && read_once(source) > 0; ++turn) {
  }
}

void StreamReader::end(LogSource& source) {
  if (!source.read_end) return;
  sets_[index_of(source.stream)].remove(source.read_end.get());
  source.read_end.reset();
  events_.ended(source);
  if (empty()) buffer_.reset();
}

void StreamReader::pause(LogStream stream) {
  ReadableSet& set = sets_[index_of(stream)];
  if (!set.empty()) set.pause();
}

void StreamReader::resume(LogStream stream) { sets_[index_of(stream)].resume(); }

}  // namespace lrun::launcher
