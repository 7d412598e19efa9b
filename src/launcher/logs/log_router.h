#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/event_loop.h"
#include "base/fd.h"
#include "base/folder.h"
#include "base/log_stream.h"
#include "logs/console_set.h"
#include "logs/line_presenter.h"
#include "logs/log_files.h"
#include "logs/log_news.h"
#include "logs/log_options.h"
#include "logs/log_worker.h"
#include "logs/stream_reader.h"
#include "logs/tail_buffer.h"

namespace lrun::launcher {

/// Reads what the workers print and passes it on: whole lines, prefixed, to the console; every byte to a file for each
/// rank and stream; the last lines to memory for the verdict.
///
/// Never blocks on a slow, stopped or closed console and never loses a byte for it: bytes that the console does not
/// take are queued, and past a bound the workers that write to it are not read until it drains (then their pipes fill
/// and they wait). A flood of one worker never starves another's lines: one read a stream and turn. A line longer than
/// 64 KiB is passed on in pieces; if another worker prints between two pieces, the line is broken there on the console,
/// never in the file. Idle, the router costs no wake-up and no buffer.
///
/// SIGPIPE must be ignored in this process. All calls on the loop's thread; the loop must outlive the router.
class LogRouter {
 public:
  LogRouter(EventLoop& loop, LogOptions options);
  LogRouter(const LogRouter&) = delete;
  LogRouter& operator=(const LogRouter&) = delete;

  /// Drops events that were not reported yet.
  void set_events(LogEvents events) { news_.set_events(std::move(events)); }

  /// Reads `read_end` from now on: the reading end of a pipe (or socket, or the master of a terminal) whose other end
  /// is the worker's stdout or stderr. At most one descriptor a local rank and stream and attempt.
  /// \throws std::system_error  the descriptor cannot be watched.
  void add_stream(int rank, int local_rank, LogStream stream, Fd read_end, LogRoute route = {});

  /// The worker writes this stream to `path` itself: file() and tail() find it there.
  void add_file(int local_rank, LogStream stream, std::filesystem::path path);

  /// Gives this attempt's files their places below `folder`, which must outlive them:
  /// `<attempt>/<local rank>/{stdout.log,stderr.log}`, and `<attempt>/filtered_{stdout,stderr}.log` for what filters
  /// pick out. Folder and file are made at their first byte, so a silent worker costs nothing; bytes that came earlier
  /// are kept until this call. A file that cannot be made or written is one warning; what is lost is noted in the file
  /// when it can be again.
  void open_files(const Folder& folder, const std::string& attempt);

  /// No worker that is added from now on has files: there is no place for them.
  void do_without_files() { options_.files = false; }

  /// The file of a rank's stream; empty while nothing was written to it.
  [[nodiscard]] std::filesystem::path file(int local_rank, LogStream stream) const;

  /// The worker is gone: reads what is in its pipes at once, so that tail() is complete when this returns. When a
  /// grandchild still holds one, goes on reading until its end or the drain limit. Then closes, flushes the last
  /// partial line and calls `drained`. A local rank without streams is drained at once.
  void worker_ended(int local_rank);

  /// All streams of this worker were read to their end. True of a local rank without streams.
  [[nodiscard]] bool drained(int local_rank) const;
  /// The same of every worker that was added.
  [[nodiscard]] bool drained() const;

  /// The last lines of a worker, oldest first, safe to show on a terminal (terminal_safe()). Empty for an unknown one.
  [[nodiscard]] std::vector<TailLine> tail(int local_rank) const;

  /// How long the worker has printed nothing. Empty where it never did, or lrun does not know.
  [[nodiscard]] std::optional<Duration> quiet(int local_rank) const;

  /// Lines that both consoles have got so far. Empty while one does not take what is queued.
  [[nodiscard]] std::optional<std::uint64_t> console_lines() const;
  /// How many these were when the worker's last output was shown. Empty where `line` is none of its last ten, or was
  /// not shown on the console of lrun's own lines.
  [[nodiscard]] std::optional<std::uint64_t> shown_at(int local_rank, std::string_view line) const;

  /// Bytes that all workers of all attempts printed and that passed through here.
  [[nodiscard]] std::uint64_t bytes_read() const { return reader_.bytes_read(); }

  /// Forgets all workers of the last attempt (streams, files, tails); consoles and what is queued for them stay.
  void begin_attempt();

  /// Writes lrun's own line or block of lines to stderr, after what is queued for it and never inside a worker's line.
  /// A missing last newline is added.
  void print(std::string_view text);

  /// A program with a terminal of its own has changed the unfinished line at the end of ours: as
  /// Console::set_other_progress_line().
  void set_other_progress_line(bool open, const std::string& drawing);

  /// Calls `done` once, with true when both consoles took all that is queued, with false at the limit; the loop goes
  /// on meanwhile. At once, before this returns, when nothing is queued. A second call replaces the first.
  void when_flushed(Duration limit, std::function<void(bool everything)> done);

  /// Lines that are printed from now on are the run's last, and matter more than what is still queued.
  void begin_last_lines();

  /// While when_flushed() waits: drops what is queued before the last lines, and waits for those at most `limit`.
  /// \return false: nothing is in their way, the console just takes nothing.
  bool hurry_last_lines(Duration limit);

  /// As when_flushed(), blocking: for the very end, when the loop no longer runs. \return everything was written.
  bool flush(Duration limit);

 private:
  LogWorker& worker(int local_rank);
  [[nodiscard]] const LogWorker* find(int local_rank) const;
  void pass_on(LogSource& source, std::string_view bytes);
  void stream_ended(LogSource& source);
  void note_drained(LogWorker& worker);
  void turn_ended(LogStream stream);
  void console_progressed();
  void write_out();
  /// Nothing is held back for later lines any more.
  void show_all();
  LinePresenter& presenter(LogStream stream) {
    return presenters_[consoles_.shared() || stream == LogStream::kOut ? 0 : 1];
  }

  EventLoop& loop_;
  LogOptions options_;
  LogNews news_;
  ConsoleSet consoles_;
  std::array<LinePresenter, 2> presenters_;  ///< of one console each
  StreamReader reader_;
  std::map<int, std::unique_ptr<LogWorker>> workers_;  ///< by local rank
  LogFiles files_;
};

}  // namespace lrun::launcher
