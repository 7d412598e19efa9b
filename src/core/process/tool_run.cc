#include "process/tool_run.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

#include "process/spawn.h"

namespace lrun::inline core {
namespace {

constexpr Duration kToObey(1000);
constexpr Duration kToDrain(200);  // what a child of the tool may hold its pipes for
constexpr Duration kLookWithoutPidfd(20);
constexpr Duration kReapLimit(1000);

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

ToolRun::ToolRun(EventLoop& loop, ToolRequest request, Done done)
    : loop_(loop), request_(std::move(request)), done_(std::move(done)) {
  try {
    start();
  } catch (const std::system_error& error) {
    outcome_.error_number = error.code().value();
  }
  if (process_) {
    watch_process();
    timer_ = loop_.after(request_.limit, [this] { out_of_time(); });
  } else {
    timer_ = loop_.after(Duration::zero(), [this] { finish(); });
  }
}

ToolRun::~ToolRun() {
  if (!process_ || ended_) return;
  process_->signal_group(SIGKILL);
  if (process_->wait_until_ended(kReapLimit)) look_at_process();
}

void ToolRun::start() {
  const Fd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  Pipe out = make_pipe();
  Pipe err = make_pipe();
  const std::vector<char*> argv = pointers_to(request_.argv);
  const std::vector<char*> environment = pointers_to(request_.environment);
  SpawnResult result = spawn({.path = request_.argv.front().c_str(),
                              .argv = argv.data(),
                              .envp = environment.data(),
                              .standard_input = nothing.get(),
                              .standard_output = out.write.get(),
                              .standard_error = err.write.get()},
                             SpawnDefaults::of_this_process());
  outcome_.error_number = result.error_number;
  if (!result.ok()) return;
  process_ = std::move(result.child);
  output_.fd = std::move(out.read);
  errors_.fd = std::move(err.read);
  set_nonblocking(output_.fd.get());
  set_nonblocking(errors_.fd.get());
  output_.readable = loop_.on_readable(output_.fd.get(), [this] { read_from(output_, outcome_.output); });
  errors_.readable = loop_.on_readable(errors_.fd.get(), [this] { read_from(errors_, outcome_.errors); });
}

void ToolRun::watch_process() {
  if (process_->poll_fd() >= 0) {
    exit_ = loop_.on_readable(process_->poll_fd(), [this] { look_at_process(); });
    return;
  }
  look_ = loop_.after(kLookWithoutPidfd, [this] {
    look_at_process();
    if (!ended_) watch_process();
  });
}

void ToolRun::read_from(Stream& stream, std::string& text) {
  char buffer[16384];
  const ssize_t count = ::read(stream.fd.get(), buffer, sizeof buffer);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count > 0) {
    const std::size_t room = request_.most_bytes - std::min(request_.most_bytes, text.size());
    text.append(buffer, std::min(static_cast<std::size_t>(count), room));
    return;
  }
  stream.readable.cancel();
  stream.fd.reset();
  finish_when_all_is_read();
}

/// A launcher's own reaping of orphans may come first: then how the tool ended is not known.
void ToolRun::look_at_process() {
  // While it is unreaped its group's number is its own: what it left behind ends now.
  if (process_->has_ended()) process_->signal_group(SIGKILL);
  try {
    outcome_.status = process_->try_wait();
    if (!outcome_.status) return;
  } catch (const std::system_error&) {
    outcome_.status = std::nullopt;
  }
  ended_ = true;
  exit_.cancel();
  if (!done_) return;
  timer_ = loop_.after(kToDrain, [this] { finish(); });
  finish_when_all_is_read();
}

void ToolRun::out_of_time() {
  if (!std::exchange(outcome_.timed_out, true)) {
    process_->signal(SIGTERM);  // a debugger lets go of its process then
    timer_ = loop_.after(kToObey, [this] { out_of_time(); });
    return;
  }
  process_->signal_group(SIGKILL);
  timer_ = loop_.after(kToObey, [this] { finish(); });  // the kernel may keep it in a read of a file system that hangs
}

void ToolRun::finish_when_all_is_read() {
  if (ended_ && !output_.fd && !errors_.fd) timer_ = loop_.after(Duration::zero(), [this] { finish(); });
}

void ToolRun::finish() {
  exit_.cancel();
  look_.cancel();
  output_ = {};
  errors_ = {};
  const Done done = std::exchange(done_, nullptr);
  done(std::move(outcome_));  // may destroy this
}

std::vector<std::string> environment_without(const std::vector<std::string>& names) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (std::find(names.begin(), names.end(), text.substr(0, text.find('='))) == names.end()) {
      environment.emplace_back(text);
    }
  }
  return environment;
}

}  // namespace lrun::inline core
