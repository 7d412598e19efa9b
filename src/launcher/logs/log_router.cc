#include "logs/log_router.h"

#include <system_error>
#include <utility>

#include "logs/log_router_implementation.h"
#include "logs/prefix_template.h"
#include "logs/rank_prefix.h"
#include "logs/terminal_text.h"

namespace lrun::launcher {

namespace {

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
      presenters_{LinePresenter(loop, consoles_.of(LogStream::kOut), options_),
                  LinePresenter(loop, consoles_.of(LogStream::kErr), options_)},
      readable_{ReadableSet(
                    loop, [this](void* tag) { return read_ready(*static_cast<LogSource*>(tag)); },
                    [this] { turn_ended(LogStream::kOut); }),
                ReadableSet(
                    loop, [this](void* tag) { return read_ready(*static_cast<LogSource*>(tag)); },
                    [this] { turn_ended(LogStream::kErr); })},
      files_(options_, [this](const std::string& text) { warn(text); }) {}

LogWorker& LogRouter::Implementation::worker(int local_rank) {
  std::unique_ptr<LogWorker>& entry = workers_[local_rank];
  if (!entry) entry = std::make_unique<LogWorker>(local_rank, options_.tail_bytes, options_.max_file_bytes);
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
  if (options_.prefix && route.prefix) name_lines(source, rank);
  source.rank = rank;
  if (route.console && !source.to_file) console(stream).forbid_gaps();
  readable(stream).add(read_end.get(), &source);
  source.read_end = std::move(read_end);
}

void LogRouter::Implementation::name_lines(LogSource& source, int rank) {
  if (options_.prefix_template.empty()) {
    const bool colour = options_.colour && console(source.stream).descriptor().terminal();
    source.plain_prefix = rank_prefix(rank, options_.rank_width, false);
    source.prefix = colour ? rank_prefix(rank, options_.rank_width, true) : source.plain_prefix;
  } else {
    source.plain_prefix =
        expand_prefix(options_.prefix_template, {options_.role, source.worker->local_rank, rank, options_.host});
    source.prefix = source.plain_prefix;
  }
}

void LogRouter::Implementation::add_file(int local_rank, LogStream stream, std::filesystem::path path) {
  worker(local_rank).source(stream).own_file = std::move(path);
}

void LogRouter::Implementation::open_files(const Folder& folder, const std::string& attempt) {
  if (options_.files) {
    const std::string path = (folder.path() / attempt).string();
    for (const LogStream stream : {LogStream::kOut, LogStream::kErr}) console(stream).allow_gaps(path);
  }
  files_.open(folder, attempt);
  for (auto& [local_rank, worker] : workers_) {
    for (LogSource& source : worker->sources) files_.write_kept(source);
  }
}

void LogRouter::Implementation::warn(const std::string& text) {
  if (events_.warning) news_.emplace_back([this, text] { events_.warning(text); });
}

void LogRouter::Implementation::begin_attempt() {
  for (auto& [local_rank, worker] : workers_) {
    worker->told = true;
    for (LogSource& source : worker->sources) {
      if (source.read_end) finish(source);
    }
  }
  workers_.clear();
  files_.begin_attempt();
  show_all();
  consoles_.write_out();
}

void LogRouter::Implementation::say(std::string_view text) {
  show_all();
  Console& to = console(LogStream::kErr);
  to.append(Console::kLauncher, {}, text);
  to.end_line(Console::kLauncher);
  to.write_out();
}

void LogRouter::Implementation::tell() {
  if (std::exchange(telling_, true)) return;  // the call below us goes on
  while (!news_.empty()) {
    for (const auto& news : std::exchange(news_, {})) news();
  }
  telling_ = false;
}

LogRouter::LogRouter(EventLoop& loop, LogOptions options, LogEvents events)
    : implementation_(std::make_unique<Implementation>(loop, std::move(options), std::move(events))) {}

LogRouter::~LogRouter() = default;

void LogRouter::set_events(LogEvents events) { implementation_->set_events(std::move(events)); }

void LogRouter::add_stream(int rank, int local_rank, LogStream stream, Fd read_end, LogRoute route) {
  implementation_->add_stream(rank, local_rank, stream, std::move(read_end), route);
}

void LogRouter::add_file(int local_rank, LogStream stream, std::filesystem::path path) {
  implementation_->add_file(local_rank, stream, std::move(path));
}

void LogRouter::open_files(const Folder& folder, const std::string& attempt) {
  implementation_->open_files(folder, attempt);
  implementation_->tell();
}

void LogRouter::do_without_files() { implementation_->do_without_files(); }

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

std::uint64_t LogRouter::bytes_taken() const { return implementation_->bytes_taken(); }

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

void LogRouter::set_foreign_line(bool open, const std::string& drawing) {
  ConsoleSet& consoles = implementation_->consoles();
  consoles.of(LogStream::kOut).set_foreign_line(open, drawing);
  if (!consoles.shared()) consoles.of(LogStream::kErr).set_foreign_line(open, drawing);
}

void LogRouter::when_flushed(Duration limit, std::function<void(bool everything)> done) {
  implementation_->show_all();
  implementation_->consoles().when_flushed(limit, std::move(done));
  implementation_->tell();
}

void LogRouter::begin_last_words() {
  implementation_->show_all();
  implementation_->consoles().begin_last_words();
}

bool LogRouter::hurry_last_words(Duration limit) {
  const bool hurried = implementation_->consoles().hurry_last_words(limit);
  implementation_->tell();
  return hurried;
}

bool LogRouter::flush(Duration limit) {
  implementation_->show_all();
  const bool everything = implementation_->consoles().flush(limit);
  implementation_->tell();
  return everything;
}

}  // namespace lrun::launcher
