#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace lrun::launcher {

/// What two copiers say to each other behind the handshake of launchers.
struct CopyMessage {
  enum class Kind : std::uint8_t {
    kOwner = 1,  ///< `text`: the token of a node; its files follow
    kFetch,      ///< `text`: the token of a node: the other end sends all files that it has of it, and kCommit
    kFile,       ///< `text`: a path, `number`: bytes, `mode`, `time_ns`; content and trailer follow
    kGone,       ///< `text`: the path of a file that is not there any more
    kCommit,     ///< what has come since the last one counts from now on; `number` 1: nothing else is there
    kDrop,       ///< the copies of the owner are not needed any more
    kKept,       ///< answer to kCommit
    kRefused,    ///< answer to kCommit or kFetch; `text`: why nothing is kept, or sent; empty: all is to be sent again
  };

  Kind kind = Kind::kCommit;
  std::string text = {};
  std::uint64_t number = 0;
  std::uint32_t mode = 0;    ///< permissions
  std::int64_t time_ns = 0;  ///< of the last change, on the wall clock

  bool operator==(const CopyMessage&) const = default;
};

/// A piece of the file that began last.
struct CopyContent {
  std::string_view bytes;  ///< of those that next() was given

  bool operator==(const CopyContent&) const = default;
};

/// That file is complete.
struct CopyFileEnd {
  bool is_valid = false;  ///< false: it was changed while it was read, and does not count

  bool operator==(const CopyFileEnd&) const = default;
};

using CopyItem = std::variant<CopyMessage, CopyContent, CopyFileEnd>;

inline constexpr std::size_t kMostCopyTextBytes = 4096;  // of a path; tokens are shorter

/// As it travels: kind, length of the text (32 bits), number (64), mode (32) and time (64), the least byte first, and
/// the text.
void append_message(std::string& out, const CopyMessage& message);
/// What ends the content of a file: whether it counts, and its CRC-32C.
void append_trailer(std::string& out, bool is_valid, std::uint32_t checksum);

/// True of a relative path that leads nowhere else: no part of it is empty, '.' or '..', and none has a zero byte.
bool is_sound_path(std::string_view path);

/// Turns the bytes of one connection into items, wherever they were cut. Memory does not grow with the size of a file.
class CopyDecoder {
 public:
  /// Consumes bytes from the front of `bytes` until one item is whole. Empty when more bytes are needed (all were
  /// consumed), or when the other end is refused.
  std::optional<CopyItem> next(std::string_view& bytes);

  /// Why the connection must be closed; empty while all is well.
  [[nodiscard]] const std::string& refusal() const { return refusal_; }

 private:
  static constexpr std::size_t kHeaderBytes = 25;
  static constexpr std::size_t kTrailerBytes = 5;

  enum class Step { kHeader, kText, kContent, kTrailer };

  bool gather(std::string_view& bytes, std::size_t size);
  void take_header();
  std::optional<CopyItem> take_text();
  std::optional<CopyItem> take_trailer();

  Step step_ = Step::kHeader;
  std::string held_;  ///< of a header, text or trailer that was cut
  CopyMessage message_;
  std::size_t text_bytes_ = 0;
  std::uint64_t content_left_ = 0;
  std::uint32_t checksum_ = 0;
  std::string refusal_;
};

}  // namespace lrun::launcher
