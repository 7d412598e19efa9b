#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/log_stream.h"

namespace lrun::launcher {

/// One of the last lines that a worker printed, without its newline.
struct TailLine {
  LogStream stream = LogStream::kOut;
  std::string text;

  bool operator==(const TailLine&) const = default;
};

/// The last output of one worker, kept for the verdict.
///
/// Takes raw bytes in the order of their arrival and gives lines; a line's place is that of its last byte. Memory grows
/// on demand up to the limit, both streams together; when it is full the oldest bytes of the stream that holds more go,
/// so that a flood on stdout never drives out the last words on stderr. Of a line that redraws itself with '\r' only
/// what follows the last '\r' is kept, but for a line that begins with the name of an exception. Of a long line the
/// beginning is kept, where an error has its name: 2 KiB, or half of the memory where that is less.
class TailBuffer {
 public:
  /// \param limit_bytes  of text and of the order of arrival; at least 256.
  explicit TailBuffer(std::size_t limit_bytes);

  void append(LogStream stream, std::string_view bytes);

  /// The lines as they came, oldest first, raw. An unfinished last line counts as a line.
  [[nodiscard]] std::vector<TailLine> lines() const;

  /// Bytes that the buffer occupies: text and order of arrival; at most the limit if that is a power of two.
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  struct Half {
    std::vector<char> bytes;  // not a string: its reserve() is exact
    bool cut = false;         ///< the first line lost its beginning
    std::size_t open = 0;     ///< bytes so far of the line that has not ended, kept or not

    [[nodiscard]] std::string_view view() const { return {bytes.data(), bytes.size()}; }
  };
  /// Consecutive bytes of one stream; the order of arrival is the order of the runs.
  struct Run {
    LogStream stream;
    std::uint32_t bytes;
  };

  Half& half(LogStream stream) { return stream == LogStream::kOut ? out_ : err_; }
  [[nodiscard]] const Half& half(LogStream stream) const { return stream == LogStream::kOut ? out_ : err_; }
  void store(LogStream stream, std::string_view bytes);
  void keep(LogStream stream, std::string_view bytes);
  [[nodiscard]] bool has_long_line(LogStream stream, std::string_view bytes) const;
  void store_redrawn(LogStream stream, std::string_view line);
  void make_room(LogStream stream, std::size_t wanted);
  void drop_oldest(LogStream stream, std::size_t count);
  void drop_open_line(LogStream stream);
  [[nodiscard]] std::size_t text_bytes() const { return out_.bytes.size() + err_.bytes.size(); }

  std::size_t text_limit_;
  std::size_t run_limit_;
  std::size_t line_limit_;
  Half out_;
  Half err_;
  std::vector<Run> runs_;
};

}  // namespace lrun::launcher
