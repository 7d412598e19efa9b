#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "logs/console_set.h"
#include "logs/line_presenter.h"
#include "logs/log_files.h"
#include "logs/log_router.h"
#include "logs/log_worker.h"
#include "logs/readable_set.h"

namespace lrun::launcher {

/// The router's parts and how they are joined. Setting up is in log_router.cc, moving bytes in log_reading.cc.
class LogRouter::Implementation {
 public:
  Implementation(EventLoop& loop, LogOptions options, LogEvents events);

  void set_events(LogEvents events) {
    events_ = std::move(events);
    news_.clear();
  }
  void add_stream(int rank, int local_rank, LogStream stream, Fd read_end, LogRoute route);
  void add_file(int local_rank, LogStream stream, std::filesystem::path path);
  void open_files(const Folder& folder, const std::string& attempt);
  void do_without_files() { options_.files = false; }
  void worker_ended(int local_rank);
  void begin_attempt();
  void say(std::string_view text);
  [[nodiscard]] const LogWorker* find(int local_rank) const;
  [[nodiscard]] bool drained() const;
  [[nodiscard]] std::uint64_t bytes_taken() const { return bytes_taken_; }
  [[nodiscard]] std::size_t tail_bytes() const { return options_.tail_bytes; }
  [[nodiscard]] ConsoleSet& consoles() { return consoles_; }
  /// Nothing is held back for later lines any more.
  void show_all();
  /// Calls the owner about everything that happened, when no work is half done.
  void tell();

 private:
  enum class Read { kSome, kNothingYet, kEnd };

  LogWorker& worker(int local_rank);
  void name_lines(LogSource& source, int rank);
  std::size_t read_ready(LogSource& source);
  Read read_once(LogSource& source);
  void take_rest(LogSource& source);
  void take_over(LogSource& source, std::string_view bytes);
  void line_came(LogSource& source, LinePresenter& to, std::string_view piece) {
    if (source.to_console) to.take(source, piece);
    if (files_.filters(source.stream)) files_.copy_if_wanted(source, piece);
  }
  void finish(LogSource& source);
  void drain_limit_passed(LogWorker& worker);
  void turn_ended(LogStream stream);
  void progressed();
  void warn(const std::string& text);
  void note_drained(LogWorker& worker);
  void give_back_memory();
  void write_out();
  [[nodiscard]] std::size_t index_of(LogStream stream) const {
    return consoles_.shared() || stream == LogStream::kOut ? 0 : 1;
  }
  ReadableSet& readable(LogStream stream) { return readable_[index_of(stream)]; }
  LinePresenter& presenter(LogStream stream) { return presenters_[index_of(stream)]; }
  Console& console(LogStream stream) { return consoles_.of(stream); }

  EventLoop& loop_;
  LogOptions options_;
  LogEvents events_;
  std::vector<std::function<void()>> news_;  ///< for the owner, told between two pieces of work
  bool telling_ = false;
  ConsoleSet consoles_;
  std::array<LinePresenter, 2> presenters_;            ///< of one console each
  std::array<ReadableSet, 2> readable_;                ///< the streams of one console each
  std::map<int, std::unique_ptr<LogWorker>> workers_;  ///< by local rank
  LogFiles files_;
  std::uint64_t bytes_taken_ = 0;
  std::unique_ptr<char[]> read_buffer_;  ///< one for all streams, made at the first read
  std::size_t last_read_ = 0;            ///< bytes of the last read
};

}  // namespace lrun::launcher
