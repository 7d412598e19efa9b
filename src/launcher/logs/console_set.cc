#include "logs/console_set.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "base/clock.h"

namespace lrun::launcher {

ConsoleSet::ConsoleSet(EventLoop& loop, const LogOptions& options, Events events)
    : loop_(loop),
      events_(std::move(events)),
      files_(options.files),
      out_(loop, options.stdout_fd, options.console_bytes, events_of(LogStream::kOut)) {
  const ConsoleDescriptor err(options.stderr_fd);
  if (err.same_as(out_.descriptor())) return;
  err_ = std::make_unique<Console>(loop, options.stderr_fd, options.console_bytes, events_of(LogStream::kErr));
}

Console::Events ConsoleSet::events_of(LogStream stream) {
  return {[this] { progressed(); }, [this, stream] { events_.closed(stream); },
          [this, stream](const std::string& what) {
            const std::string which = stream == LogStream::kOut ? "standard output " : "standard error ";
            const bool kept = files_ && !of(stream).gap().forbidden();
            events_.warning(which + what + (kept ? "; the log files have what it lacks" : "; lines are lost"));
          }};
}

bool ConsoleSet::empty() const { return out_.queued_bytes() == 0 && (!err_ || err_->queued_bytes() == 0); }

void ConsoleSet::write_out() {
  out_.write_out();
  if (err_) err_->write_out();
}

void ConsoleSet::rest() {
  out_.rest();
  if (err_) err_->rest();
}

void ConsoleSet::progressed() {
  if (done_ && empty()) flushed(true);
  events_.progressed();
}

void ConsoleSet::flushed(bool everything) {
  flush_limit_.cancel();
  const auto done = std::exchange(done_, nullptr);
  done(everything);
}

void ConsoleSet::when_flushed(Duration limit, std::function<void(bool everything)> done) {
  done_ = std::move(done);
  write_out();
  if (empty()) {
    flushed(true);
  } else {
    flush_limit_ = loop_.after(limit, [this] { flushed(false); });
  }
}

void ConsoleSet::begin_last_lines() {
  out_.begin_last_lines();
  if (err_) err_->begin_last_lines();
}

bool ConsoleSet::hurry_last_lines(Duration limit) {
  const bool out_skipped = out_.skip_to_last_lines();
  const bool err_skipped = err_ && err_->skip_to_last_lines();
  if ((!out_skipped && !err_skipped) || !done_) return false;
  when_flushed(limit, std::move(done_));
  return true;
}

bool ConsoleSet::flush(Duration limit) {
  const SteadyTime deadline = std::chrono::steady_clock::now() + limit;
  for (;;) {
    out_.retry();
    if (err_) err_->retry();
    if (empty()) {
      events_.progressed();  // reading may have been paused
      return true;
    }
    const auto left = std::chrono::ceil<Duration>(deadline - std::chrono::steady_clock::now()).count();
    if (left <= 0) return false;
    std::array<pollfd, 2> waiting{};
    nfds_t count = 0;
    for (const Console* console : std::array<const Console*, 2>{&out_, err_.get()}) {
      if (console == nullptr || console->queued_bytes() == 0) continue;
      waiting[count++] = {console->descriptor().pollable(), POLLOUT, 0};
    }
    ::poll(waiting.data(), count, static_cast<int>(std::min<long>(left, 1'000'000)));
  }
}

}  // namespace lrun::launcher
