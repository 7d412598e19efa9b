#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

namespace lrun::launcher {

/// Cuts one stream of bytes into lines, in bounded memory.
///
/// Gives pieces: a piece that ends with '\n' ends its line, any other is continued by the next piece. Put together the
/// pieces are the bytes that came in. A line of at most kLongestHeld bytes is one piece, in however many reads it came;
/// a longer one may be passed on as it arrives. '\r' is a byte like any other.
class LineSplitter {
 public:
  static constexpr std::size_t kLongestHeld = std::size_t{64} * 1024;

  /// Calls sink(std::string_view piece) for every piece that `bytes` completes. The views end with the call.
  template <class Sink>
  void split(std::string_view bytes, Sink&& sink) {
    const char* at = bytes.data();
    const char* const end = at + bytes.size();
    while (at != end) {
      const void* const newline = std::memchr(at, '\n', static_cast<std::size_t>(end - at));
      if (newline == nullptr) break;
      const char* const next = static_cast<const char*>(newline) + 1;
      end_line(std::string_view(at, static_cast<std::size_t>(next - at)), sink);
      at = next;
    }
    if (at != end) keep(std::string_view(at, static_cast<std::size_t>(end - at)), sink);
  }

  /// Passes on the last, unfinished line; for the end of the stream.
  template <class Sink>
  void finish(Sink&& sink) {
    if (!held_.empty()) release(sink);
    held_ = {};
  }

  /// The unfinished line as far as it is held back; until the next call.
  [[nodiscard]] std::string_view held() const { return held_; }

  /// Bytes of an unfinished line that are held back; at most kLongestHeld.
  [[nodiscard]] std::size_t held_bytes() const { return held_.size(); }

 private:
  template <class Sink>
  void keep(std::string_view unfinished, Sink&& sink) {
    if (held_.size() + unfinished.size() <= kLongestHeld) {
      held_.append(unfinished);
      return;
    }
    if (!held_.empty()) release(sink);
    sink(unfinished);
  }

  template <class Sink>
  void end_line(std::string_view rest, Sink&& sink) {
    if (!held_.empty() && held_.size() + rest.size() <= kLongestHeld) {
      held_.append(rest);
      rest = {};
    }
    if (!held_.empty()) release(sink);
    if (!rest.empty()) sink(rest);
  }

  template <class Sink>
  void release(Sink&& sink) {
    sink(std::string_view(held_));
    forget();
  }

  void forget();

  std::string held_;
};

}  // namespace lrun::launcher
