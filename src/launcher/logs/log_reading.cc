#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "logs/log_router_implementation.h"

namespace lrun::launcher {

namespace {

constexpr std::size_t kReadBytes = std::size_t{256} * 1024;
/// Written as soon as this much is queued, before the block outgrows the processor's cache.
constexpr std::size_t kWriteBytes = std::size_t{256} * 1024;

/// How much a pipe can hold; what an ended worker left in it is at most this.
std::size_t capacity_of(int fd) {
  const int bytes = ::fcntl(fd, F_GETPIPE_SZ);
  return bytes > 0 ? static_cast<std::size_t>(bytes) : std::size_t{1024} * 1024;
}

}  // namespace

/// One reading of a stream that is readable. \return the bytes that came.
std::size_t LogRouter::Implementation::read_ready(LogSource& source) {
  return read_once(source) == Read::kSome ? last_read_ : 0;
}

LogRouter::Implementation::Read LogRouter::Implementation::read_once(LogSource& source) {
  if (!source.read_end) return Read::kEnd;
  if (!read_buffer_) read_buffer_.reset(new char[kReadBytes]);  // touched only as far as it is used
  const ssize_t count = ::read(source.read_end.get(), read_buffer_.get(), kReadBytes);
  if (count > 0) {
    last_read_ = static_cast<std::size_t>(count);
    bytes_taken_ += last_read_;
    take_over(source, {read_buffer_.get(), static_cast<std::size_t>(count)});
    return Read::kSome;
  }
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return Read::kNothingYet;
  finish(source);  // the end, or what a terminal says at its end: EIO
  return Read::kEnd;
}

void LogRouter::Implementation::take_over(LogSource& source, std::string_view bytes) {
  files_.write(source, bytes);
  source.worker->tail.append(source.stream, bytes);
  LinePresenter& to = presenter(source.stream);
  to.begin_read();
  source.lines.split(bytes, [&](std::string_view piece) { line_came(source, to, piece); });
  to.end_read(source);
  if (console(source.stream).queued_bytes() >= kWriteBytes) console(source.stream).write_out();
}

/// Takes what an ended worker left, also while reading is paused: it is no more than its pipe holds. A grandchild that
/// goes on writing is not followed beyond that.
void LogRouter::Implementation::take_rest(LogSource& source) {
  if (!source.read_end) return;
  const std::size_t most = capacity_of(source.read_end.get());
  const std::size_t turns = most / kReadBytes + 16;  // reads may be small, as the writes were
  for (std::size_t turn = 0; turn < turns && read_once(source) == Read::kSome; ++turn) {
  }
}

void LogRouter::Implementation::finish(LogSource& source) {
  LinePresenter& to = presenter(source.stream);
  std::string rest;
  source.lines.finish([&](std::string_view piece) { rest = piece; });
  if (!rest.empty() && files_.filters(source.stream)) files_.copy_if_wanted(source, rest + "\n");
  if (source.to_console) to.finish(source, rest);
  readable(source.stream).remove(source.read_end.get());
  source.read_end.reset();
  source.file.close();
  note_drained(*source.worker);
  give_back_memory();
}

void LogRouter::Implementation::worker_ended(int local_rank) {
  LogWorker& ended = worker(local_rank);
  ended.ended = true;
  for (LogSource& source : ended.sources) take_rest(source);
  if (ended.reading()) {
    ended.drain_deadline = loop_.after(options_.drain_limit, [this, &ended] { drain_limit_passed(ended); });
  }
  note_drained(ended);
  write_out();
}

void LogRouter::Implementation::drain_limit_passed(LogWorker& worker) {
  for (LogSource& source : worker.sources) {
    take_rest(source);
    if (source.read_end) finish(source);
  }
  write_out();
  tell();
}

void LogRouter::Implementation::note_drained(LogWorker& worker) {
  if (!worker.drained() || std::exchange(worker.told, true)) return;
  worker.drain_deadline.cancel();
  if (events_.drained) news_.emplace_back([this, rank = worker.local_rank] { events_.drained(rank); });
}

bool LogRouter::Implementation::drained() const {
  for (const auto& [local_rank, worker] : workers_) {
    if (!worker->drained()) return false;
  }
  return true;
}

void LogRouter::Implementation::turn_ended(LogStream stream) {
  presenter(stream).end_turn();
  const Console& to = console(stream);
  if (to.full() && !to.may_have_gaps() && !readable(stream).empty()) readable(stream).pause();
  tell();
}

void LogRouter::Implementation::progressed() {
  for (const LogStream stream : {LogStream::kOut, LogStream::kErr}) {
    if (readable(stream).paused() && console(stream).relieved()) readable(stream).resume();
  }
  tell();
}

void LogRouter::Implementation::write_out() {
  presenters_[0].end_turn();
  if (!consoles_.shared()) presenters_[1].end_turn();
}

void LogRouter::Implementation::show_all() {
  for (LinePresenter& presenter : presenters_) presenter.show_all();
}

void LogRouter::Implementation::give_back_memory() {
  if (!readable_[0].empty() || !readable_[1].empty()) return;
  read_buffer_.reset();
  consoles_.rest();
}

}  // namespace lrun::launcher
