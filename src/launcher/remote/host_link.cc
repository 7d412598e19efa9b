#include "remote/host_link.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "base/split.h"
#include "process/program_path.h"

namespace lrun::launcher {
namespace {

constexpr std::size_t kReadBytes = std::size_t{64} * 1024;
constexpr std::size_t kWordBytesKept = 4096;
constexpr Duration kToDrain(500);  // what a child of ssh may hold its pipes for
constexpr Duration kLookWithoutPidfd(50);
constexpr Duration kReapLimit(1000);

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::string last_line_of(const std::string& text) {
  std::string last;
  for (const std::string& line : split_lines(text)) {
    const std::string_view bare = trimmed(line, " \t\r");
    if (!bare.empty()) last = bare;
  }
  return last;
}

/// Takes away what was written. False when nobody reads it.
bool write_from(std::string_view& bytes, int fd) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno == EAGAIN;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

}  // namespace

HostLink::HostLink(EventLoop& loop, const std::vector<std::string>& command, const SpawnDefaults& defaults,
                   std::string_view first, Events events)
    : loop_(loop), events_(std::move(events)), first_(first) {
  start(command, defaults);
  readable_ = loop_.on_readable(output_.get(), [this] { read_output(); });
  errors_readable_ = loop_.on_readable(error_output_.get(), [this] { read_errors(); });
  if (child_->poll_fd() >= 0)
    exit_ = loop_.on_readable(child_->poll_fd(), [this] { look_at_child(); });
  else
    again_ = loop_.after(kLookWithoutPidfd, [this] { look_at_child(); });
  flush();
}

HostLink::~HostLink() {
  close();
  if (!child_ || status_) return;
  child_->signal_group(SIGKILL);
  if (child_->wait_until_ended(kReapLimit)) (void)child_->try_wait();
}

void HostLink::start(const std::vector<std::string>& command, const SpawnDefaults& defaults) {
  const char* const path = std::getenv("PATH");
  const ProgramPath program = find_program(command.front(), path == nullptr ? "" : path);
  if (program.error_number != 0) {
    throw std::system_error(program.error_number, std::generic_category(), "cannot execute '" + command.front() + "'");
  }
  Pipe in = make_pipe();
  Pipe out = make_pipe();
  Pipe err = make_pipe();
  const std::vector<char*> argv = pointers_to(command);
  SpawnResult result = spawn({.path = program.path.c_str(),
                              .argv = argv.data(),
                              .envp = environ,
                              .standard_input = in.read.get(),
                              .standard_output = out.write.get(),
                              .standard_error = err.write.get()},
                             defaults);
  if (!result.ok()) {
    throw std::system_error(result.error_number, std::generic_category(), "cannot start '" + program.path + "'");
  }
  child_ = std::move(result.child);
  input_ = std::move(in.write);
  output_ = std::move(out.read);
  error_output_ = std::move(err.read);
  for (const Fd* const end : {&input_, &output_, &error_output_}) set_nonblocking(end->get());
}

void HostLink::send(NodeFrame::Kind kind, std::string_view payload) { send_bytes(encode(kind, payload)); }

void HostLink::send_bytes(std::string_view frames) {
  if (!input_) return;
  unsent_.tail() += frames;
  flush();
}

void HostLink::flush() {
  if (!input_) return;
  const std::size_t before = first_.size();
  const bool is_read = write_from(first_, input_.get()) && (!first_.empty() || unsent_.write_to(input_.get()));
  if (first_.size() < before && events_.moved) events_.moved();
  if (is_read && !(first_.empty() && unsent_.empty())) {
    if (!writable_.armed()) writable_ = loop_.on_writable(input_.get(), [this] { flush(); });
    return;
  }
  writable_.cancel();
  if (!is_read) input_.reset();  // its end is told by its exit
}

void HostLink::pause(bool paused) {
  if (std::exchange(paused_, paused) == paused || !output_) return;
  if (paused) {
    readable_.cancel();
  } else {
    readable_ = loop_.on_readable(output_.get(), [this] { read_output(); });
    if (status_) drain();
  }
}

void HostLink::end_input() {
  writable_.cancel();
  input_.reset();
}

void HostLink::close() {
  events_ = {};
  readable_.cancel();
  end_input();
}

void HostLink::read_output() {
  char bytes[kReadBytes];
  const ssize_t count = ::read(output_.get(), bytes, sizeof bytes);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count > 0) {
    if (status_) drain();
    take({bytes, static_cast<std::size_t>(count)});
    return give_frames();
  }
  readable_.cancel();
  output_.reset();
  finish_when_all_is_read();
}

/// Output of a login says nothing about an end that comes after the greeting.
void HostLink::take(std::string_view bytes) {
  if (reader_.greeted()) return reader_.take(bytes);
  reader_.take(bytes);
  if (!reader_.greeted()) return keep_words(bytes);
  if (error_output_) read_errors();  // what came before and waits in another pipe
  words_.clear();
}

void HostLink::give_frames() {
  while (std::optional<NodeFrame> frame = reader_.next()) {
    if (events_.frame) events_.frame(std::move(*frame));
  }
  if (reader_.broken() && child_ && !status_) child_->signal_group(SIGKILL);
}

void HostLink::read_errors() {
  char bytes[kWordBytesKept];
  const ssize_t count = ::read(error_output_.get(), bytes, sizeof bytes);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count > 0) return keep_words({bytes, static_cast<std::size_t>(count)});
  errors_readable_.cancel();
  error_output_.reset();
  finish_when_all_is_read();
}

/// In the order in which they come: a banner of sshd comes before the refusal that a login shell prints.
void HostLink::keep_words(std::string_view bytes) {
  words_ += bytes;
  if (words_.size() > 2 * kWordBytesKept) words_.erase(0, words_.size() - kWordBytesKept);
}

void HostLink::look_at_child() {
  try {
    status_ = child_->try_wait();
  } catch (const std::system_error&) {
    status_ = ExitStatus{};
  }
  if (!status_) {
    if (child_->poll_fd() < 0) again_ = loop_.after(kLookWithoutPidfd, [this] { look_at_child(); });
    return;
  }
  exit_.cancel();
  drain();
  finish_when_all_is_read();
}

/// What waits while it is paused is not lost: it is read once it goes on.
void HostLink::drain() {
  drain_ = loop_.after(kToDrain, [this] {
    errors_readable_.cancel();
    error_output_.reset();
    if (!paused_) {
      readable_.cancel();
      output_.reset();
    }
    finish_when_all_is_read();
  });
}

void HostLink::finish_when_all_is_read() {
  if (!status_ || output_ || error_output_ || !events_.ended) return;
  drain_.cancel();
  end_input();  // what a wrapper of ssh has left is told so, too
  const auto ended = std::exchange(events_.ended, nullptr);
  ended(*status_, last_line_of(words_));  // may destroy this
}

}  // namespace lrun::launcher
