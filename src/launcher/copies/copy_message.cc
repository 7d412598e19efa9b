// In: messages and pieces of files, or bytes of a connection between two copiers. Out: bytes as they travel, or items
// that are in range. Called by CopyConnection and FileStream.
#include "copies/copy_message.h"

#include <algorithm>
#include <utility>

#include "base/crc32c.h"

namespace lrun::launcher {
namespace {

using Kind = CopyMessage::Kind;

constexpr unsigned kBitsOfByte = 8;
constexpr std::uint64_t kMostFileBytes = std::uint64_t{1} << 50U;

template <class Number>
void append_number(std::string& out, Number number) {
  const auto bits = static_cast<std::uint64_t>(number);
  for (std::size_t i = 0; i < sizeof number; ++i) out.push_back(static_cast<char>((bits >> (i * kBitsOfByte)) & 0xFFU));
}

template <class Number>
Number take_number(std::string_view& bytes) {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < sizeof(Number); ++i) {
    bits |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (i * kBitsOfByte);
  }
  bytes.remove_prefix(sizeof(Number));
  return static_cast<Number>(bits);
}

bool is_kind(std::uint8_t kind) {
  return kind >= static_cast<std::uint8_t>(Kind::kOwner) && kind <= static_cast<std::uint8_t>(Kind::kRefused);
}

}  // namespace

void append_message(std::string& out, const CopyMessage& message) {
  out.push_back(static_cast<char>(message.kind));
  append_number(out, static_cast<std::uint32_t>(message.text.size()));
  append_number(out, message.number);
  append_number(out, message.mode);
  append_number(out, message.time_ns);
  out += message.text;
}

void append_trailer(std::string& out, bool is_valid, std::uint32_t checksum) {
  out.push_back(is_valid ? '\1' : '\0');
  append_number(out, checksum);
}

bool is_sound_path(std::string_view path) {
  if (path.size() > kMostCopyTextBytes || path.find('\0') != std::string_view::npos) return false;
  while (true) {
    const std::string_view part = path.substr(0, path.find('/'));
    if (part.empty() || part == "." || part == "..") return false;
    if (part.size() == path.size()) return true;
    path.remove_prefix(part.size() + 1);
  }
}

std::optional<CopyItem> CopyDecoder::next(std::string_view& bytes) {
  while (refusal_.empty()) {
    switch (step_) {
      case Step::kHeader:
        if (!gather(bytes, kHeaderBytes)) return std::nullopt;
        take_header();
        break;
      case Step::kText:
        if (!gather(bytes, text_bytes_)) return std::nullopt;
        if (auto item = take_text()) return item;
        break;
      case Step::kContent: {
        if (content_left_ == 0) {
          step_ = Step::kTrailer;
          break;
        }
        if (bytes.empty()) return std::nullopt;
        const std::string_view piece = bytes.substr(0, std::min<std::uint64_t>(bytes.size(), content_left_));
        bytes.remove_prefix(piece.size());
        content_left_ -= piece.size();
        checksum_ = crc32c(piece, checksum_);
        return CopyContent{piece};
      }
      case Step::kTrailer:
        if (!gather(bytes, kTrailerBytes)) return std::nullopt;
        return take_trailer();
    }
  }
  return std::nullopt;
}

/// Until `size` bytes are held.
bool CopyDecoder::gather(std::string_view& bytes, std::size_t size) {
  const std::size_t count = std::min(bytes.size(), size - held_.size());
  held_.append(bytes.substr(0, count));
  bytes.remove_prefix(count);
  return held_.size() == size;
}

void CopyDecoder::take_header() {
  std::string_view header = held_;
  const auto kind = take_number<std::uint8_t>(header);
  text_bytes_ = take_number<std::uint32_t>(header);
  message_.number = take_number<std::uint64_t>(header);
  message_.mode = take_number<std::uint32_t>(header);
  message_.time_ns = take_number<std::int64_t>(header);
  if (!is_kind(kind) || text_bytes_ > kMostCopyTextBytes) {
    refusal_ = "an invalid message";
    return;
  }
  message_.kind = static_cast<Kind>(kind);
  held_.clear();
  step_ = Step::kText;
}

std::optional<CopyItem> CopyDecoder::take_text() {
  message_.text = std::exchange(held_, {});
  const bool is_file = message_.kind == Kind::kFile;
  const bool is_wrong = ((is_file || message_.kind == Kind::kGone) && !is_sound_path(message_.text)) ||
                        (is_file && message_.number > kMostFileBytes);
  if (is_wrong) {
    refusal_ = "a file with an invalid path or size";
    return std::nullopt;
  }
  content_left_ = is_file ? message_.number : 0;
  checksum_ = 0;
  step_ = is_file ? Step::kContent : Step::kHeader;
  return std::exchange(message_, {});
}

std::optional<CopyItem> CopyDecoder::take_trailer() {
  std::string_view trailer = held_;
  const bool is_valid = take_number<std::uint8_t>(trailer) != 0;
  const auto checksum = take_number<std::uint32_t>(trailer);
  held_.clear();
  step_ = Step::kHeader;
  if (is_valid && checksum != checksum_) {
    refusal_ = "a file with a wrong checksum";
    return std::nullopt;
  }
  return CopyFileEnd{is_valid};
}

}  // namespace lrun::launcher
