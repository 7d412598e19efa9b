#pragma once

#include <gtest/gtest.h>
#include <pty.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/event_loop.h"
#include "base/fd.h"
#include "base/folder.h"
#include "base/log_stream.h"
#include "support/full_disk.h"
#include "support/temporary_folder.h"

namespace lrun::launcher {

using test::FullDisk;
using test::TemporaryFolder;

inline constexpr LogStream kOut = LogStream::kOut;
inline constexpr LogStream kErr = LogStream::kErr;

/// Where every TemporaryFolder is.
inline const Folder& temporary_folder() {
  static const Folder folder = Folder::open(std::filesystem::temp_directory_path());
  return folder;
}

inline std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void put(const Fd& to, std::string_view text) {
  ASSERT_EQ(::write(to.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

/// A terminal that changes no byte, of so many columns (0: unknown).
inline Pipe make_terminal(unsigned short columns = 0) {
  int master = -1;
  int slave = -1;
  termios raw{};
  ::cfmakeraw(&raw);
  const winsize size{static_cast<unsigned short>(columns > 0 ? 24 : 0), columns, 0, 0};
  if (::openpty(&master, &slave, nullptr, &raw, &size) != 0) {
    throw std::system_error(errno, std::generic_category(), "openpty");
  }
  return {Fd(master), Fd(slave)};
}

/// Ends the loop with a failure when the awaited event does not come.
class TimeLimit {
 public:
  explicit TimeLimit(EventLoop& loop)
      : timer_(loop.after(Duration(20'000), [&loop] {
          ADD_FAILURE() << "nothing happened for 20 s";
          loop.stop();
        })) {}

  [[nodiscard]] bool expired() const { return !timer_.armed(); }

 private:
  EventLoop::Timer timer_;
};

/// The reader at the other end of a console.
class Reader {
 public:
  Reader(EventLoop& loop, Fd end) : loop_(loop), end_(std::move(end)) { set_nonblocking(end_.get()); }

  /// Reads until `enough` is true of the text, then stops the loop.
  void read_until(std::function<bool(const std::string& text)> enough) {
    enough_ = std::move(enough);
    if (enough_(text)) return;
    watch_ = loop_.on_readable(end_.get(), [this] { read(); });
    const TimeLimit limit(loop_);
    while (!limit.expired() && !enough_(text)) loop_.run();  // others stop the loop too
    watch_.cancel();
  }
  void read_until_it_says(const std::string& wanted) {
    read_until([wanted](const std::string& seen) { return seen.find(wanted) != std::string::npos; });
  }
  /// Takes what is there now.
  const std::string& take() {
    while (read()) {
    }
    return text;
  }
  void close() { end_.reset(); }

  std::string text;

 private:
  bool read() {
    char buffer[16384];
    const ssize_t count = ::read(end_.get(), buffer, sizeof(buffer));
    if (count > 0) text.append(buffer, static_cast<std::size_t>(count));
    if (enough_ && enough_(text)) loop_.stop();
    return count > 0;
  }

  EventLoop& loop_;
  Fd end_;
  std::function<bool(const std::string&)> enough_;
  EventLoop::Watch watch_;
};

/// A worker's end of its pipe that writes when there is room, as a process would, and closes when all is written.
class Writer {
 public:
  /// \param times  how often the text is written: enough for a flood that a test never sees end.
  Writer(EventLoop& loop, Fd end, std::string text, std::size_t times = 1)
      : end_(std::move(end)), text_(std::move(text)), total_(text_.size() * times) {
    set_nonblocking(end_.get());
    watch_ = loop.on_writable(end_.get(), [this] { write(); });
  }

  std::size_t written = 0;
  std::function<void()> progressed;
  std::function<void()> closed;

 private:
  void write() {
    const std::size_t at = written % text_.size();
    const ssize_t count = ::write(end_.get(), text_.data() + at, std::min<std::size_t>(text_.size() - at, 10'007));
    if (count > 0) written += static_cast<std::size_t>(count);
    if (count > 0 && progressed) progressed();
    if (count < 0 && errno == EPIPE) watch_.cancel();
    if (written < total_) return;
    watch_.cancel();
    end_.reset();
    if (closed) closed();
  }

  Fd end_;
  std::string text_;
  std::size_t total_;
  EventLoop::Watch watch_;
};

/// `count` numbered lines of a length of their own.
inline std::string numbered_lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += std::to_string(i) + " " + std::string(static_cast<std::size_t>(i * 37 % 150), 'x') + "\n";
  }
  return text;
}

/// The lines of `console` that begin with `prefix`, without it.
inline std::string lines_of(std::string_view prefix, std::string_view console) {
  std::string text;
  while (!console.empty()) {
    const std::size_t length = std::min(console.find('\n'), console.size() - 1) + 1;
    if (console.starts_with(prefix)) text += console.substr(prefix.size(), length - prefix.size());
    console.remove_prefix(length);
  }
  return text;
}

/// A process ignores SIGPIPE while it routes output.
struct IgnoreBrokenPipes {
  IgnoreBrokenPipes() { ::signal(SIGPIPE, SIG_IGN); }
};

}  // namespace lrun::launcher
