#include "report/head_channel.h"

#include <sys/mman.h>
#include <sys/socket.h>

#include <cerrno>
#include <exception>
#include <new>
#include <optional>
#include <system_error>
#include <utility>

#include "base/fd.h"

namespace lrun::launcher {
namespace {

constexpr char kFirstSeverity = 'a';

std::uint64_t bit_of(int signal_number) {
  return signal_number > 0 && signal_number <= 64 ? std::uint64_t{1} << static_cast<unsigned>(signal_number - 1) : 0;
}

}  // namespace

HeadSignals::HeadSignals() {
  void* const memory = ::mmap(nullptr, sizeof *shared_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
  shared_ = new (memory) Shared;
}

HeadSignals::~HeadSignals() { ::munmap(shared_, sizeof *shared_); }

void HeadSignals::note(int signal_number) { shared_->numbers |= bit_of(signal_number); }

bool HeadSignals::has(int signal_number) const { return (shared_->numbers & bit_of(signal_number)) != 0; }

void HeadSignals::note_loss() { shared_->is_lost = true; }

bool HeadSignals::is_lost() const { return shared_->is_lost; }

void HeadChannel::send(NodeFrame::Kind kind, std::string_view payload) noexcept {
  try {
    (void)write_all(fd_, encode(kind, payload));
  } catch (const std::exception&) {  // out of memory: the run's end says enough
  }
}

void HeadChannel::print(Severity severity, std::string_view text) noexcept {
  try {
    std::string payload(1, static_cast<char>(kFirstSeverity + static_cast<char>(severity)));
    send(NodeFrame::Kind::kOwnWords, payload.append(text));
  } catch (const std::exception&) {
  }
}

void HeadChannel::print_lines(std::string_view lines) noexcept { send(NodeFrame::Kind::kOwnWords, lines); }

void HeadChannel::print_of_job(std::string_view lines) noexcept { send(NodeFrame::Kind::kJobWords, lines); }

void HeadChannel::send_begun() noexcept { send(NodeFrame::Kind::kBegun, {}); }

void HeadChannel::send_told(std::string_view answer) noexcept { send(NodeFrame::Kind::kTold, answer); }

void HeadChannel::listen(EventLoop& loop, std::function<void(const std::string& question)> asked) {
  asked_ = std::move(asked);
  readable_ = loop.on_readable(fd_, [this] { read_some(); });
}

void HeadChannel::read_some() {
  char bytes[4096];
  const ssize_t count = ::recv(fd_, bytes, sizeof bytes, MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) return readable_.cancel();
  questions_.feed({bytes, static_cast<std::size_t>(count)});
  while (const std::optional<NodeFrame> frame = questions_.next()) {
    if (frame->kind == NodeFrame::Kind::kAsk) asked_(frame->payload);
  }
  if (questions_.broken()) readable_.cancel();
}

std::string text_of_node(const std::string& payload, const std::string& host, bool colour) {
  if (payload.empty()) return {};
  const int severity = payload.front() - kFirstSeverity;
  if (severity < 0 || severity > static_cast<int>(Severity::kHint)) return payload;
  const std::string text = payload.substr(1);
  return message_line(static_cast<Severity>(severity), host.empty() ? text : host + ": " + text, colour);
}

}  // namespace lrun::launcher
