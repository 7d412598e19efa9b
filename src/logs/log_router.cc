#include "logs/log_router.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <map>
#include <system_error>
#include <utility>

#include "logs/console_set.h"
#include "logs/log_files.h"
#include "logs/log_worker.h"
#include "logs/prefix_template.h"
#include "logs/rank_prefix.h"
#include "logs/readable_set.h"
#include "logs/terminal_text.h"

namespace lrun {

namespace {

constexpr std::size_t kReadBytes = std::size_t{256} * 1024;
/// Written as soon as this much is queued, before the block outgrows the processor's cache.
constexpr std::size_t kWriteBytes = std::size_t{256} * 1024;

/// How much a pipe can hold; what an ended worker left in it is at most this.
std::size_t capacity_of(int fd) {
  const int bytes = ::fcntl(fd, F_GETPIPE_SZ);
  return bytes > 0 ? static_cast<std::size_t>(bytes) : std::size_t{1024} * 1024;
}

/// What was taken over, and the ends of the files that the worker wrote itself.
std::vector<TailLine> tail_of(const LogWorker& worker, std::size_t tail_bytes) {
  std::vector<TailLine> lines = worker.tail.lines();
  for (const LogSource& source : worker.sources) {
    if (source.own_file.empty()) continue;
    TailBuffer tail(tail_bytes);
    tail.append(source.stream, end_of_file(source.own_file, tail_bytes));
    for (TailLine& line : tail.lines()) lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace

class LogRouter::Implementation {
 public:
  Implementation(EventLoop& loop, LogOptions options, LogEvents events);

  void add_stream(int rank, int local_rank, LogStream stream, Fd read_end, LogRoute route);
  void add_file(int local_rank, LogStream stream, std::filesystem::path path);
  void open_files(std::filesystem::path attempt_dir);
  void worker_ended(int local_rank);
  void begin_attempt();
  void say(std::string_view text);
  [[nodiscard]] const LogWorker* find(int local_rank) const;
  [[nodiscard]] bool drained() const;
  [[nodiscard]] std::size_t tail_bytes() const { return options_.tail_bytes; }
  [[nodiscard]] ConsoleSet& consoles() { return consoles_; }
  /// Calls the owner about everything that happened, when no work is half done.
  void tell();

 private:
  enum class Read { kSome, kNothingYet, kEnd };

  LogWorker& worker(int local_rank);
  Read read_once(LogSource& source);
  void take_rest(LogSource& source);
  void take_over(LogSource& source, std::string_view bytes);
  void name_lines(LogSource& source, int rank);
  void line_came(LogSource& source, Console& to, std::string_view piece) {
    if (source.to_console) to.append(source.writer, source.prefix, piece);
    if (files_.filters(source.stream)) files_.copy_if_wanted(source, piece);
  }
  void finish(LogSource& source);
  void drain_limit_passed(LogWorker& worker);
  void turn_ended(LogStream stream);
  void progressed();
  void warn(const std::string& text);
  void note_drained(LogWorker& worker);
  void give_back_memory();
  ReadableSet& readable(LogStream stream) {
    return readable_[consoles_.shared() ? 0 : stream == LogStream::kOut ? 0 : 1];
  }
  Console& console(LogStream stream) { return consoles_.of(stream); }

  EventLoop& loop_;
  LogOptions options_;
  LogEvents events_;
  std::vector<std::function<void()>> news_;  ///< for the owner, told between two pieces of work
  bool telling_ = false;
  ConsoleSet consoles_;
  std::array<ReadableSet, 2> readable_;                ///< the streams of one console each
  std::map<int, std::unique_ptr<LogWorker>> workers_;  ///< by local rank
  LogFiles files_;
  std::unique_ptr<char[]> read_buffer_;  ///< one for all streams, made at the first read
};

LogRouter::Implementation::Implementation(EventLoop& loop, LogOptions options, LogEvents events)
    : loop_(loop),
      options_(std::move(options)),
      events_(std::move(events)),
      consoles_(loop, options_,
                {[this] { progressed(); },
                 [this](LogStream stream) {
                   if (events_.console_closed) news_.emplace_back([this, stream] { events_.console_closed(stream); });
                 },
                 [this](const std::string& text) { warn(text); }}),
      readable_{ReadableSet(
                    loop, [this](void* tag) { read_once(*static_cast<LogSource*>(tag)); },
                    [this] { turn_ended(LogStream::kOut); }),
                ReadableSet(
                    loop, [this](void* tag) { read_once(*static_cast<LogSource*>(tag)); },
                    [this] { turn_ended(LogStream::kErr); })},
      files_(options_, [this](const std::string& text) { warn(text); }) {}

LogWorker& LogRouter::Implementation::worker(int local_rank) {
  std::unique_ptr<LogWorker>& entry = workers_[local_rank];
  if (!entry) entry = std::make_unique<LogWorker>(local_rank, options_.tail_bytes);
  return *entry;
}

const LogWorker* LogRouter::Implementation::find(int local_rank) const {
  const auto entry = workers_.find(local_rank);
  return entry == workers_.end() ? nullptr : entry->second.get();
}

void LogRouter::Implementation::add_stream(int rank, int local_rank, LogStream stream, Fd read_end, LogRoute route) {
  set_nonblocking(read_end.get());
  LogSource& source = worker(local_rank).source(stream);
  source.writer = 2 * local_rank + (stream == LogStream::kOut ? 0 : 1);
  source.to_file = route.file && options_.files;
  source.to_console = route.console;
  if (options_.prefix) name_lines(source, rank);
  files_.name(source);
  readable(stream).add(read_end.get(), &source);
  source.read_end = std::move(read_end);
}

void LogRouter::Implementation::name_lines(LogSource& source, int rank) {
  if (options_.prefix_template.empty()) {
    const bool colour = options_.colour && console(source.stream).descriptor().terminal();
    source.prefix = rank_prefix(rank, options_.rank_width, colour);
    source.plain_prefix = rank_prefix(rank, options_.rank_width, false);
  } else {
    source.plain_prefix =
        expand_prefix(options_.prefix_template, {options_.role, source.worker->local_rank, rank, options_.host});
    source.prefix = source.plain_prefix;
  }
}

void LogRouter::Implementation::add_file(int local_rank, LogStream stream, std::filesystem::path path) {
  worker(local_rank).source(stream).own_file = std::move(path);
}

void LogRouter::Implementation::open_files(std::filesystem::path attempt_dir) {
  files_.open(std::move(attempt_dir));
  for (auto& [local_rank, worker] : workers_) {
    for (LogSource& source : worker->sources) files_.name(source);
  }
}

void LogRouter::Implementation::warn(const std::string& text) {
  if (events_.warning) news_.emplace_back([this, text] { events_.warning(text); });
}

LogRouter::Implementation::Read LogRouter::Implementation::read_once(LogSource& source) {
  if (!source.read_end) return Read::kEnd;
  if (!read_buffer_) read_buffer_.reset(new char[kReadBytes]);  // touched only as far as it is used
  const ssize_t count = ::read(source.read_end.get(), read_buffer_.get(), kReadBytes);
  if (count > 0) {
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
  Console& to = console(source.stream);
  source.lines.split(bytes, [&](std::string_view piece) { line_came(source, to, piece); });
  if (to.queued_bytes() >= kWriteBytes) to.write_out();
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
  Console& to = console(source.stream);
  source.lines.finish([&](std::string_view piece) { line_came(source, to, piece); });
  to.end_line(source.writer);
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
  consoles_.write_out();
}

void LogRouter::Implementation::drain_limit_passed(LogWorker& worker) {
  for (LogSource& source : worker.sources) {
    take_rest(source);
    if (source.read_end) finish(source);
  }
  consoles_.write_out();
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
  Console& to = console(stream);
  to.write_out();
  if (to.full() && !readable(stream).empty()) readable(stream).pause();
  tell();
}

void LogRouter::Implementation::progressed() {
  for (const LogStream stream : {LogStream::kOut, LogStream::kErr}) {
    if (readable(stream).paused() && console(stream).relieved()) readable(stream).resume();
  }
  tell();
}

void LogRouter::Implementation::begin_attempt() {
  for (auto& [local_rank, worker] : workers_) {
    worker->told = true;
    for (LogSource& source : worker->sources) {
      if (source.read_end) finish(source);
    }
  }
  workers_.clear();
  files_.open({});
  consoles_.write_out();
}

void LogRouter::Implementation::say(std::string_view text) {
  Console& to = console(LogStream::kErr);
  to.append(Console::kLauncher, {}, text);
  to.end_line(Console::kLauncher);
  to.write_out();
}

void LogRouter::Implementation::give_back_memory() {
  if (!readable_[0].empty() || !readable_[1].empty()) return;
  read_buffer_.reset();
  consoles_.rest();
}

void LogRouter::Implementation::tell() {
  if (std::exchange(telling_, true)) return;  // the call below us goes on
  while (!news_.empty()) {
    for (const auto& news : std::exchange(news_, {})) news();
  }
  telling_ = false;
}

LogRouter::LogRouter(EventLoop& loop, LogOptions options, LogEvents events)
    : implementation_(std::make_unique<Implementation>(loop, options, std::move(events))) {}

LogRouter::~LogRouter() = default;

void LogRouter::add_stream(int rank, int local_rank, LogStream stream, Fd read_end, LogRoute route) {
  implementation_->add_stream(rank, local_rank, stream, std::move(read_end), route);
}

void LogRouter::add_file(int local_rank, LogStream stream, std::filesystem::path path) {
  implementation_->add_file(local_rank, stream, std::move(path));
}

void LogRouter::open_files(std::filesystem::path attempt_dir) {
  implementation_->open_files(std::move(attempt_dir));
  implementation_->tell();
}

std::filesystem::path LogRouter::file(int local_rank, LogStream stream) const {
  const LogWorker* const worker = implementation_->find(local_rank);
  if (worker == nullptr) return {};
  const LogSource& source = worker->source(stream);
  if (!source.own_file.empty()) return source.own_file;
  return source.file.made() ? source.file.path() : std::filesystem::path();
}

void LogRouter::worker_ended(int local_rank) {
  implementation_->worker_ended(local_rank);
  implementation_->tell();
}

bool LogRouter::drained(int local_rank) const {
  const LogWorker* const worker = implementation_->find(local_rank);
  return worker == nullptr || worker->drained();
}

bool LogRouter::drained() const { return implementation_->drained(); }

std::vector<TailLine> LogRouter::tail(int local_rank) const {
  const LogWorker* const worker = implementation_->find(local_rank);
  if (worker == nullptr) return {};
  std::vector<TailLine> lines = tail_of(*worker, implementation_->tail_bytes());
  for (TailLine& line : lines) line.text = terminal_safe(line.text);
  return lines;
}

void LogRouter::begin_attempt() {
  implementation_->begin_attempt();
  implementation_->tell();
}

void LogRouter::say(std::string_view text) {
  implementation_->say(text);
  implementation_->tell();
}

void LogRouter::when_flushed(Duration limit, std::function<void(bool everything)> done) {
  implementation_->consoles().when_flushed(limit, std::move(done));
  implementation_->tell();
}

bool LogRouter::flush(Duration limit) {
  const bool everything = implementation_->consoles().flush(limit);
  implementation_->tell();
  return everything;
}

}  // namespace lrun
