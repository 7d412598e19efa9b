#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "base/clock.h"
#include "base/event_loop.h"
#include "base/fd.h"
#include "base/log_stream.h"
#include "logs/line_splitter.h"
#include "logs/rank_log_file.h"
#include "logs/tail_buffer.h"

namespace lrun::launcher {

struct LogWorker;

/// One output stream of one worker, from its pipe to its file.
struct LogSource {
  LogWorker* worker = nullptr;
  LogStream stream = LogStream::kOut;
  int rank = 0;
  int writer = 0;  ///< number of this source on its console; a lower rank has a lower one
  Fd read_end;     ///< empty before add_stream() and from its end on
  bool to_file = false;
  bool to_console = false;
  std::string prefix;        ///< before each line on the console
  std::string plain_prefix;  ///< the same without colour
  bool line_open = false;    ///< a part of a line was shown, its end not yet
  std::string drawing;       ///< visible text so far of a line that redraws itself and is too long to be held
  bool copying = false;      ///< a filter picked the line that is not ended yet
  LineSplitter lines;
  RankLogFile file;
  std::filesystem::path own_file;  ///< the worker writes there itself: no bytes come by here
};

/// One worker as the router keeps it. Pinned: its sources point back, and epoll sets point at its sources.
struct LogWorker {
  LogWorker(int rank, std::size_t tail_bytes, std::uint64_t max_file_bytes) : local_rank(rank), tail(tail_bytes) {
    sources[0].stream = LogStream::kOut;
    sources[1].stream = LogStream::kErr;
    for (LogSource& source : sources) {
      source.worker = this;
      source.file = RankLogFile(max_file_bytes);
    }
  }
  LogWorker(const LogWorker&) = delete;
  LogWorker& operator=(const LogWorker&) = delete;
  ~LogWorker() = default;

  [[nodiscard]] LogSource& source(LogStream stream) { return sources[stream == LogStream::kOut ? 0 : 1]; }
  [[nodiscard]] const LogSource& source(LogStream stream) const { return sources[stream == LogStream::kOut ? 0 : 1]; }
  [[nodiscard]] bool reading() const { return sources[0].read_end || sources[1].read_end; }
  [[nodiscard]] bool drained() const { return ended && !reading(); }

  int local_rank;
  std::array<LogSource, 2> sources;
  TailBuffer tail;
  SteadyTime last_output{};         ///< when the last byte was read; the clock's beginning: none was
  std::uint64_t shown_at = 0;       ///< lines of the consoles when the last of its output was shown
  bool ended = false;               ///< the process is gone
  bool drain_reported = false;      ///< `drained` was called
  EventLoop::Timer drain_deadline;  ///< armed while a grandchild holds a pipe
};

}  // namespace lrun::launcher
