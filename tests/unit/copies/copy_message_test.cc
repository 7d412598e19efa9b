#include "copies/copy_message.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/crc32c.h"

namespace lrun::launcher {
namespace {

using Kind = CopyMessage::Kind;

void append_file(std::string& out, const std::string& path, std::string_view content) {
  append_message(
      out, {.kind = Kind::kFile, .text = path, .number = content.size(), .mode = 0640, .time_ns = 1'700'000'000'123});
  out += content;
  append_trailer(out, true, crc32c(content));
}

/// Items without the borders between pieces of a file.
struct Decoded {
  std::vector<CopyMessage> messages;
  std::string contents;
  std::vector<bool> ends;
  std::string refusal;

  bool operator==(const Decoded&) const = default;
};

void take_all(CopyDecoder& decoder, std::string_view bytes, Decoded& decoded) {
  while (const auto item = decoder.next(bytes)) {
    if (const auto* const message = std::get_if<CopyMessage>(&*item)) decoded.messages.push_back(*message);
    if (const auto* const content = std::get_if<CopyContent>(&*item)) decoded.contents += content->bytes;
    if (const auto* const end = std::get_if<CopyFileEnd>(&*item)) decoded.ends.push_back(end->is_valid);
  }
  decoded.refusal = decoder.refusal();
  EXPECT_TRUE(bytes.empty() || !decoded.refusal.empty()) << "all is consumed";
}

Decoded decoded_of(std::string_view bytes, std::size_t step = std::string_view::npos) {
  CopyDecoder decoder;
  Decoded decoded;
  for (std::size_t at = 0; at < bytes.size(); at += std::min(step, bytes.size())) {
    take_all(decoder, bytes.substr(at, step), decoded);
  }
  return decoded;
}

std::vector<CopyMessage> messages_of_all_kinds() {
  return {{.kind = Kind::kOwner, .text = "a token", .number = 65'535},
          {.kind = Kind::kFetch, .text = std::string(kMostCopyTextBytes, 't')},
          {.kind = Kind::kFile, .text = "a/b", .mode = 0755, .time_ns = -1},
          {.kind = Kind::kGone, .text = "a/b/c"},
          {.kind = Kind::kCommit},
          {.kind = Kind::kDrop, .number = std::numeric_limits<std::uint64_t>::max()},
          {.kind = Kind::kKept, .mode = std::numeric_limits<std::uint32_t>::max()},
          {.kind = Kind::kRefused, .text = "why", .time_ns = std::numeric_limits<std::int64_t>::min()}};
}

TEST(CopyMessage, OfEveryKindComesBackAsItWas) {
  for (const CopyMessage& message : messages_of_all_kinds()) {
    std::string bytes;
    append_message(bytes, message);
    if (message.kind == Kind::kFile) append_trailer(bytes, true, 0);
    EXPECT_EQ(decoded_of(bytes).messages, std::vector<CopyMessage>{message});
  }
}

TEST(CopyDecoder, TakesItemsWhereverTheyAreCut) {
  std::string bytes;
  append_message(bytes, {.kind = Kind::kOwner, .text = "a token", .number = 3});
  append_message(bytes, {.kind = Kind::kGone, .text = "old"});
  append_file(bytes, "a/b", "some content");
  append_file(bytes, "empty", "");
  append_file(bytes, "c", std::string("\0\1\2", 3));
  append_message(bytes, {.kind = Kind::kCommit});
  const Decoded whole = decoded_of(bytes);
  EXPECT_EQ(whole.messages.size(), 6U);
  EXPECT_EQ(whole.contents, std::string("some content\0\1\2", 15));
  EXPECT_EQ(whole.ends, (std::vector<bool>{true, true, true}));
  EXPECT_EQ(whole.refusal, "");
  for (const std::size_t step : {1U, 2U, 3U, 7U, 24U, 25U, 26U}) EXPECT_EQ(decoded_of(bytes, step), whole) << step;
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    CopyDecoder decoder;
    Decoded decoded;
    take_all(decoder, std::string_view(bytes).substr(0, cut), decoded);
    take_all(decoder, std::string_view(bytes).substr(cut), decoded);
    EXPECT_EQ(decoded, whole) << "cut at " << cut;
  }
}

TEST(CopyDecoder, GivesContentWithoutACopy) {
  std::string bytes;
  append_file(bytes, "a", "content");
  std::string_view left = bytes;
  CopyDecoder decoder;
  (void)decoder.next(left);
  const auto item = decoder.next(left);
  ASSERT_TRUE(item && std::holds_alternative<CopyContent>(*item));
  EXPECT_EQ(std::get<CopyContent>(*item).bytes.data(), bytes.data() + bytes.find("content"));
}

TEST(CopyDecoder, GivesAFileWhoseSenderSaysThatItDoesNotCount) {
  std::string bytes;
  append_message(bytes, {.kind = Kind::kFile, .text = "a", .number = 3});
  bytes += "abc";
  append_trailer(bytes, false, 0);  // its checksum does not matter
  append_message(bytes, {.kind = Kind::kCommit});
  const Decoded decoded = decoded_of(bytes);
  EXPECT_EQ(decoded.ends, std::vector<bool>{false});
  EXPECT_EQ(decoded.messages.size(), 2U);
  EXPECT_EQ(decoded.refusal, "");
}

TEST(CopyDecoder, RefusesAWrongChecksum) {
  std::string bytes;
  append_file(bytes, "a", "content");
  append_message(bytes, {.kind = Kind::kCommit});
  bytes[bytes.find("content")] = 'C';
  const Decoded decoded = decoded_of(bytes);
  EXPECT_EQ(decoded.refusal, "a file with a wrong checksum");
  EXPECT_EQ(decoded.ends, std::vector<bool>());
  EXPECT_EQ(decoded.messages.size(), 1U) << "and nothing that follows";
}

TEST(CopyDecoder, RefusesPathsThatLeadElsewhere) {
  for (const Kind kind : {Kind::kFile, Kind::kGone}) {
    for (const char* const path : {"", "/", "/etc/passwd", "..", ".", "../a", "a/../b", "a/..", "a//b", "a/", "./a"}) {
      std::string bytes;
      append_message(bytes, {.kind = kind, .text = path});
      const Decoded decoded = decoded_of(bytes);
      EXPECT_EQ(decoded.refusal, "a file with an invalid path or size") << path;
      EXPECT_EQ(decoded.messages, std::vector<CopyMessage>()) << path;
    }
  }
}

TEST(IsSoundPath, IsTrueOfPathsBelowAFolder) {
  for (const char* const path : {"a", "a/b", "...", "..a", "a..", ".a/.b", "a b", "a\nb"}) {
    EXPECT_TRUE(is_sound_path(path)) << path;
  }
  EXPECT_FALSE(is_sound_path(std::string_view("a\0b", 3)));
  EXPECT_TRUE(is_sound_path(std::string(kMostCopyTextBytes, 'a')));
  EXPECT_FALSE(is_sound_path(std::string(kMostCopyTextBytes + 1, 'a')));
}

TEST(CopyDecoder, RefusesKindsThatDoNotExist) {
  for (const int kind : {0, 9, 71, 255}) {
    std::string bytes;
    append_message(bytes, {.kind = Kind::kCommit});
    bytes[0] = static_cast<char>(kind);
    EXPECT_EQ(decoded_of(bytes).refusal, "an invalid message") << kind;
  }
}

TEST(CopyDecoder, RefusesALongTextBeforeItsBytesCome) {
  std::string bytes;
  append_message(bytes, {.kind = Kind::kFetch, .text = std::string(kMostCopyTextBytes + 1, 't')});
  EXPECT_EQ(decoded_of(bytes.substr(0, 25)).refusal, "an invalid message");
  EXPECT_EQ(decoded_of(bytes, 5).refusal, "an invalid message");
}

TEST(CopyDecoder, RefusesAFileThatNoFileSystemHolds) {
  std::string bytes;
  append_message(bytes, {.kind = Kind::kFile, .text = "a", .number = (std::uint64_t{1} << 50U) + 1});
  EXPECT_EQ(decoded_of(bytes).refusal, "a file with an invalid path or size");
  bytes.clear();
  append_message(bytes, {.kind = Kind::kOwner, .text = "a", .number = (std::uint64_t{1} << 50U) + 1});
  EXPECT_EQ(decoded_of(bytes).refusal, "") << "that is no size";
}

TEST(CopyDecoder, TakesNothingBehindARefusal) {
  std::string bytes;
  append_message(bytes, {.kind = Kind::kGone, .text = ".."});
  CopyDecoder decoder;
  Decoded decoded;
  take_all(decoder, bytes, decoded);
  bytes.clear();
  append_message(bytes, {.kind = Kind::kCommit});
  take_all(decoder, bytes, decoded);
  EXPECT_EQ(decoded.messages, std::vector<CopyMessage>());
  EXPECT_NE(decoded.refusal, "");
}

}  // namespace
}  // namespace lrun::launcher
