#include "multihost/host_output.h"

namespace lrun::launcher {
namespace {

constexpr Duration kUnfinishedLine(100);

/// Of a host's stream among those of the consoles.
int writer_of(std::size_t host, LogStream stream) {
  return static_cast<int>(2 * host) + (stream == LogStream::kErr ? 1 : 0);
}

}  // namespace

HostOutput::HostOutput(EventLoop& loop, std::size_t hosts, const LogOptions& options, bool colour)
    : loop_(loop),
      colour_(colour),
      consoles_(loop, options,
                {.progressed = [this] { look_whether_full(); },
                 .closed =
                     [this](LogStream stream) {
                       if (stream == LogStream::kOut && events_.closed) events_.closed();
                     },
                 .warning = [this](const std::string& text) { warn(text); }}),
      lines_(hosts) {}

void HostOutput::show(std::size_t host, LogStream stream, std::string_view bytes) {
  LineSplitter& lines = stream == LogStream::kOut ? lines_[host].first : lines_[host].second;
  Console& console = consoles_.of(stream);
  lines.split(bytes, [&](std::string_view piece) { console.append(writer_of(host, stream), {}, piece); });
  console.write_out();
  if (lines.held_bytes() > 0 && !unfinished_.armed()) {
    unfinished_ = loop_.after(kUnfinishedLine, [this] { show_unfinished(); });
  }
  look_whether_full();
}

void HostOutput::show_unfinished() {
  for (std::size_t host = 0; host < lines_.size(); ++host) {
    for (const LogStream stream : kLogStreams) {
      LineSplitter& lines = stream == LogStream::kOut ? lines_[host].first : lines_[host].second;
      lines.finish([&](std::string_view piece) { consoles_.of(stream).append(writer_of(host, stream), {}, piece); });
    }
  }
  consoles_.write_out();
}

void HostOutput::print_of_job(std::string_view lines) noexcept {
  if (lines.empty()) return;
  consoles_.of(LogStream::kErr).append(Console::kLauncher, {}, lines);
  consoles_.write_out();
}

/// A slow console makes the workers wait, as on one host.
void HostOutput::look_whether_full() {
  Console& out = consoles_.of(LogStream::kOut);
  Console& err = consoles_.of(LogStream::kErr);
  const bool is_full = out.full() || err.full();
  const bool is_relieved = out.relieved() && err.relieved();
  if (full_ ? !is_relieved : !is_full) return;
  full_ = !full_;
  if (events_.filled) events_.filled(full_);
}

void HostOutput::when_flushed(Duration limit, std::function<void()> done) {
  consoles_.when_flushed(limit, [done = std::move(done)](bool) { done(); });
}

}  // namespace lrun::launcher
