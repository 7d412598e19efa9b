// In: the streams of workers, and lines of lrun itself. Out: lines on the consoles, log files, the last lines of each
// worker. WorkerOutput adds streams; NodeLauncher owns the events.
#include "logs/log_router.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "logs/prefix_template.h"
#include "logs/rank_prefix.h"
#include "logs/terminal_text.h"

namespace lrun::launcher {
namespace {

/// Written as soon as this much is queued, before the block outgrows the processor's cache.
constexpr std::size_t kWriteBytes = std::size_t{256} * 1024;

/// The lines that were read, and the ends of the files that the worker wrote itself.
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

/// How long ago the worker wrote to a file of its own, by the clock of the file system. Empty where there is none.
std::optional<Duration> since_written(const std::filesystem::path& own_file) {
  std::error_code error;
  if (own_file.empty() || std::filesystem::file_size(own_file, error) == 0 || error) return std::nullopt;
  const auto written = std::filesystem::last_write_time(own_file, error);
  if (error) return std::nullopt;
  return std::chrono::ceil<Duration>(std::filesystem::file_time_type::clock::now() - written);
}

/// Sets the prefix of the source's lines.
void name_lines(LogSource& source, const LogOptions& options, bool is_terminal) {
  if (!options.prefix_template.empty()) {
    source.plain_prefix = source.prefix =
        expand_prefix(options.prefix_template, {options.role, source.worker->local_rank, source.rank, options.host});
    return;
  }
  source.plain_prefix = rank_prefix(source.rank, options.rank_width, false);
  const bool has_colour = options.colour && is_terminal;
  source.prefix = has_colour ? rank_prefix(source.rank, options.rank_width, true) : source.plain_prefix;
}

}  // namespace

LogRouter::LogRouter(EventLoop& loop, LogOptions options)
    : loop_(loop),
      options_(std::move(options)),
      consoles_(loop, options_,
                {[this] { console_progressed(); }, [this](LogStream stream) { news_.console_closed(stream); },
                 [this](const std::string& text) { news_.warning(text); }}),
      presenters_{LinePresenter(loop, consoles_.of(LogStream::kOut), options_),
                  LinePresenter(loop, consoles_.of(LogStream::kErr), options_)},
      reader_(loop, consoles_.shared(),
              {.bytes = [this](LogSource& source, std::string_view bytes) { pass_on(source, bytes); },
               .ended = [this](LogSource& source) { stream_ended(source); },
               .turn_ended = [this](LogStream stream) { turn_ended(stream); }}),
      files_(options_, [this](const std::string& text) { news_.warning(text); }) {}

LogWorker& LogRouter::worker(int local_rank) {
  std::unique_ptr<LogWorker>& entry = workers_[local_rank];
  if (!entry) entry = std::make_unique<LogWorker>(local_rank, options_.tail_bytes, options_.max_file_bytes);
  return *entry;
}

const LogWorker* LogRouter::find(int local_rank) const {
  const auto entry = workers_.find(local_rank);
  return entry == workers_.end() ? nullptr : entry->second.get();
}

void LogRouter::add_stream(int rank, int local_rank, LogStream stream, Fd read_end, LogRoute route) {
  set_nonblocking(read_end.get());
  LogSource& source = worker(local_rank).source(stream);
  source.writer = 2 * local_rank + (stream == LogStream::kOut ? 0 : 1);
  source.to_file = route.file && options_.files;
  source.to_console = route.console;
  source.rank = rank;
  if (options_.prefix && route.prefix) name_lines(source, options_, consoles_.of(stream).descriptor().terminal());
  if (route.console && !source.to_file) consoles_.of(stream).gap().forbid();
  source.read_end = std::move(read_end);
  reader_.add(source);
}

void LogRouter::add_file(int local_rank, LogStream stream, std::filesystem::path path) {
  worker(local_rank).source(stream).own_file = std::move(path);
}

void LogRouter::open_files(const Folder& folder, const std::string& attempt) {
  if (options_.files) {
    const std::string path = (folder.path() / attempt).string();
    for (const LogStream stream : kLogStreams) consoles_.of(stream).gap().allow(path);
  }
  files_.open(folder, attempt);
  for (auto& [local_rank, worker] : workers_) {
    for (LogSource& source : worker->sources) files_.write_kept(source);
  }
  news_.report();
}

std::filesystem::path LogRouter::file(int local_rank, LogStream stream) const {
  const LogWorker* const worker = find(local_rank);
  if (worker == nullptr) return {};
  const LogSource& source = worker->source(stream);
  if (!source.own_file.empty()) return source.own_file;
  return source.file.made() ? source.file.path() : std::filesystem::path();
}

void LogRouter::pass_on(LogSource& source, std::string_view bytes) {
  files_.write(source, bytes);
  source.worker->tail.append(source.stream, bytes);
  source.worker->last_output = steady_now();
  news_.printed(source.rank, source.stream, bytes);
  LinePresenter& to = presenter(source.stream);
  to.begin_read();
  source.lines.split(bytes, [&](std::string_view piece) {
    if (source.to_console) to.take(source, piece);
    if (files_.filters(source.stream)) files_.copy_if_wanted(source, piece);
  });
  to.end_read(source);
  if (source.to_console) source.worker->shown_at = consoles_.lines();
  if (consoles_.of(source.stream).queued_bytes() >= kWriteBytes) consoles_.of(source.stream).write_out();
}

void LogRouter::stream_ended(LogSource& source) {
  std::string rest;
  source.lines.finish([&](std::string_view piece) { rest = piece; });
  if (!rest.empty() && files_.filters(source.stream)) files_.copy_if_wanted(source, rest + "\n");
  if (source.to_console) presenter(source.stream).finish(source, rest);
  news_.printed(source.rank, source.stream, "\n");  // the last line may lack its end
  source.file.close();
  note_drained(*source.worker);
  if (reader_.empty()) consoles_.rest();
}

void LogRouter::worker_ended(int local_rank) {
  LogWorker& ended = worker(local_rank);
  ended.ended = true;
  for (LogSource& source : ended.sources) reader_.read_rest(source);
  if (ended.reading()) {
    ended.drain_deadline = loop_.after(options_.drain_limit, [this, &ended] {
      for (LogSource& source : ended.sources) {
        reader_.read_rest(source);
        reader_.end(source);
      }
      write_out();
      news_.report();
    });
  }
  note_drained(ended);
  write_out();
  news_.report();
}

void LogRouter::note_drained(LogWorker& worker) {
  if (!worker.drained() || std::exchange(worker.drain_reported, true)) return;
  worker.drain_deadline.cancel();
  news_.drained(worker.local_rank);
}

bool LogRouter::drained(int local_rank) const {
  const LogWorker* const worker = find(local_rank);
  return worker == nullptr || worker->drained();
}

bool LogRouter::drained() const {
  for (const auto& [local_rank, worker] : workers_) {
    if (!worker->drained()) return false;
  }
  return true;
}

std::vector<TailLine> LogRouter::tail(int local_rank) const {
  const LogWorker* const worker = find(local_rank);
  if (worker == nullptr) return {};
  std::vector<TailLine> lines = tail_of(*worker, options_.tail_bytes);
  for (TailLine& line : lines) line.text = terminal_safe(line.text);
  return lines;
}

std::optional<Duration> LogRouter::quiet(int local_rank) const {
  const LogWorker* const worker = find(local_rank);
  if (worker == nullptr) return std::nullopt;
  std::optional<Duration> quiet;
  const auto take = [&quiet](Duration since) {
    quiet = std::max(Duration::zero(), std::min(since, quiet.value_or(since)));
  };
  if (worker->last_output != SteadyTime{}) take(std::chrono::ceil<Duration>(steady_now() - worker->last_output));
  for (const LogSource& source : worker->sources) {
    if (const std::optional<Duration> since = since_written(source.own_file)) take(*since);
  }
  return quiet;
}

std::optional<std::uint64_t> LogRouter::console_lines() const {
  return consoles_.blocked() ? std::nullopt : std::optional(consoles_.lines());
}

std::optional<std::uint64_t> LogRouter::shown_at(int local_rank, std::string_view line) const {
  constexpr std::ptrdiff_t kLastLines = 10;
  const LogWorker* const worker = find(local_rank);
  const std::vector<TailLine> lines = tail(local_rank);
  const auto is_shown = [&](const TailLine& last) {
    const bool is_beside_ours = consoles_.shared() || last.stream == LogStream::kErr;
    return last.text == line && is_beside_ours && worker->source(last.stream).to_console;
  };
  if (std::none_of(lines.end() - std::min(kLastLines, std::ssize(lines)), lines.end(), is_shown)) return std::nullopt;
  return worker->shown_at;
}

void LogRouter::begin_attempt() {
  for (auto& [local_rank, worker] : workers_) {
    worker->drain_reported = true;  // nobody waits for the last attempt any more
    for (LogSource& source : worker->sources) reader_.end(source);
  }
  workers_.clear();
  files_.begin_attempt();
  show_all();
  consoles_.write_out();
  news_.report();
}

void LogRouter::turn_ended(LogStream stream) {
  presenter(stream).end_turn();
  const Console& to = consoles_.of(stream);
  if (to.full() && !to.may_have_gaps()) reader_.pause(stream);
  news_.report();
}

void LogRouter::console_progressed() {
  for (const LogStream stream : kLogStreams) {
    if (reader_.paused(stream) && consoles_.of(stream).relieved()) reader_.resume(stream);
  }
  news_.report();
}

void LogRouter::write_out() {
  presenters_[0].end_turn();
  if (!consoles_.shared()) presenters_[1].end_turn();
}

void LogRouter::show_all() {
  for (LinePresenter& presenter : presenters_) presenter.show_all();
}

void LogRouter::print(std::string_view text) {
  show_all();
  Console& to = consoles_.of(LogStream::kErr);
  to.append(Console::kLauncher, {}, text);
  to.end_line(Console::kLauncher);
  to.write_out();
  news_.report();
}

void LogRouter::set_other_progress_line(bool open, const std::string& drawing) {
  for (const LogStream stream : kLogStreams) consoles_.of(stream).set_other_progress_line(open, drawing);
}

void LogRouter::when_flushed(Duration limit, std::function<void(bool everything)> done) {
  show_all();
  consoles_.when_flushed(limit, std::move(done));
  news_.report();
}

void LogRouter::begin_last_lines() {
  show_all();
  consoles_.begin_last_lines();
}

bool LogRouter::hurry_last_lines(Duration limit) {
  const bool hurried = consoles_.hurry_last_lines(limit);
  news_.report();
  return hurried;
}

bool LogRouter::flush(Duration limit) {
  show_all();
  const bool everything = consoles_.flush(limit);
  news_.report();
  return everything;
}

}  // namespace lrun::launcher
