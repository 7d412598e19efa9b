// Bytes that a copier of files in memory gets from another node: items are the same wherever they were cut, and their
// paths lead nowhere else.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "copies/copier_channel.h"
#include "copies/copy_message.h"

namespace {

using namespace lrun::launcher;

/// Without the borders between pieces of a file.
struct Decoded {
  std::vector<CopyMessage> messages;
  std::string contents;
  std::vector<bool> ends;
  std::string refusal;

  bool operator==(const Decoded&) const = default;
};

Decoded decoded_of(std::string_view bytes, std::size_t step) {
  CopyDecoder decoder;
  Decoded decoded;
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    std::string_view piece = bytes.substr(at, step);
    while (const auto item = decoder.next(piece)) {
      if (const auto* const message = std::get_if<CopyMessage>(&*item)) decoded.messages.push_back(*message);
      if (const auto* const content = std::get_if<CopyContent>(&*item)) decoded.contents += content->bytes;
      if (const auto* const end = std::get_if<CopyFileEnd>(&*item)) decoded.ends.push_back(end->is_valid);
    }
    if (decoder.refusal().empty() && !piece.empty()) std::abort();
  }
  decoded.refusal = decoder.refusal();
  return decoded;
}

void check(const CopyMessage& message) {
  using Kind = CopyMessage::Kind;
  const bool has_path = message.kind == Kind::kFile || message.kind == Kind::kGone;
  if (has_path && !is_sound_path(message.text)) std::abort();
  if (has_path && ("/" + message.text + "/").find("/../") != std::string::npos) std::abort();
  std::string bytes;
  append_message(bytes, message);
  std::string_view left = bytes;
  const auto item = CopyDecoder().next(left);
  if (!item || !left.empty() || std::get<CopyMessage>(*item) != message) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const Decoded whole = decoded_of(bytes, std::max<std::size_t>(size, 1));
  if (decoded_of(bytes, 1) != whole || decoded_of(bytes, 7) != whole) std::abort();
  if (whole.contents.size() > size) std::abort();
  for (const CopyMessage& message : whole.messages) check(message);
  if (const auto order = copier_order_from_json(bytes)) {
    if (copier_order_from_json(to_json(*order)) != order) std::abort();
  }
  if (const auto news = copier_news_from_json(bytes)) {
    if (copier_news_from_json(to_json(*news)) != news) std::abort();
  }
  return 0;
}
