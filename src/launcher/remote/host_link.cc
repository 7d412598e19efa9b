// In: the command of ssh, or of lrun on this host, and frames for the lrun that it starts. Out: its frames, and its
// end. Called by HostLinks in the head, and by HostRelay on a host that others are behind.
#include "remote/host_link.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "process/program_path.h"
#include "remote/ssh.h"

namespace lrun::launcher {
namespace {

constexpr std::size_t kBytesKept = 4096;

/// \throws std::system_error  there is no such program on PATH.
std::string path_of(const std::string& name) {
  const char* const path = std::getenv("PATH");
  ProgramPath program = find_program(name, path == nullptr ? "" : path);
  if (program.error_number != 0) {
    throw std::system_error(program.error_number, std::generic_category(), "cannot execute '" + name + "'");
  }
  return std::move(program.path);
}

/// Writes what `fd` takes, and cuts that off `bytes`. \return false when the other end is closed.
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
    : loop_(loop),
      events_(std::move(events)),
      first_(first),
      program_(loop,
               {.path = path_of(command.front()),
                .argv = command,
                .input = HelperRequest::Stream::kPipe,
                .defaults = defaults,
                .renews_left_pipes = true},
               {.output = [this](std::string_view bytes) { read_output(bytes); },
                .errors = [this](std::string_view bytes) { keep_last(bytes); },
                .ended = [this](std::optional<ExitStatus> status) { ended(status.value_or(ExitStatus{})); }}),
      input_(program_.take_input()) {
  flush();
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
  if (first_.size() < before && events_.progress) events_.progress();
  if (is_read && !(first_.empty() && unsent_.empty())) {
    if (!writable_.armed()) writable_ = loop_.on_writable(input_.get(), [this] { flush(); });
    return;
  }
  writable_.cancel();
  if (!is_read) input_.reset();  // the exit of the program reports its end
}

void HostLink::end_input() {
  writable_.cancel();
  input_.reset();
}

void HostLink::close() {
  events_ = {};
  end_input();
}

/// The output of a login says nothing about an end that comes after the handshake.
void HostLink::read_output(std::string_view bytes) {
  const bool had_handshake = reader_.has_handshake();
  reader_.feed(bytes);
  if (!reader_.has_handshake()) {
    keep_last(bytes);
  } else if (!had_handshake) {
    program_.read_errors_now();  // what the login printed and waits in the other pipe
    last_output_.clear();
  }
  give_frames();
}

void HostLink::give_frames() {
  while (std::optional<NodeFrame> frame = reader_.next()) {
    if (events_.frame) events_.frame(std::move(*frame));
  }
  if (reader_.broken()) program_.signal_group(SIGKILL);
}

/// In the order in which they come: a banner of sshd comes before the refusal that a login shell prints.
void HostLink::keep_last(std::string_view bytes) {
  last_output_ += bytes;
  if (last_output_.size() > 2 * kBytesKept) last_output_.erase(0, last_output_.size() - kBytesKept);
}

void HostLink::ended(const ExitStatus& status) {
  end_input();  // whatever a wrapper of ssh has left sees the end of its input, too
  if (!events_.ended) return;
  const auto report = std::exchange(events_.ended, nullptr);
  report(status, ssh_last_words(last_output_));  // may destroy this object
}

}  // namespace lrun::launcher
