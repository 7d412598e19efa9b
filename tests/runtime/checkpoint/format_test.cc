#include "runtime/checkpoint/format.h"

#include <gtest/gtest.h>

#include <string>

#include "base/crc32c.h"

namespace lrun::detail {
namespace {

CheckpointHeader some_header() {
  return {CheckpointKind::kPart, 1234567890123, 0xFEDCBA9876543210U, 2, 5, 1000, 0xDEADBEEF};
}

std::string bytes_of(const CheckpointHeader& header) {
  const auto bytes = encode_checkpoint_header(header);
  return {bytes.data(), bytes.size()};
}

std::string why(const std::string& bytes, std::uint64_t file_size) {
  const auto decoded = decode_checkpoint_header(bytes, file_size);
  const auto* text = std::get_if<std::string>(&decoded);
  return text != nullptr ? *text : "accepted";
}

/// With the checksum that fits.
std::string sealed(std::string bytes) {
  const std::uint32_t checksum = crc32c(std::string_view(bytes).substr(0, 60));
  for (std::size_t byte = 0; byte < 4; ++byte) bytes[60 + byte] = static_cast<char>(checksum >> (8 * byte) & 0xff);
  return bytes;
}

TEST(CheckpointHeader, IsReadAsItWasWritten) {
  const auto header = some_header();
  const auto decoded = decode_checkpoint_header(bytes_of(header), 1064);
  ASSERT_TRUE(std::holds_alternative<CheckpointHeader>(decoded)) << std::get<std::string>(decoded);
  EXPECT_EQ(std::get<CheckpointHeader>(decoded), header);
}

TEST(CheckpointHeader, KeepsItsBytesForAllTime) {
  const std::string bytes = bytes_of({CheckpointKind::kWhole, 7, 0, 0, 1, 9, 0xE3069283});
  EXPECT_EQ(bytes.substr(0, 16), std::string("lrunckpt\x01\0\0\0\x01\0\0\0", 16));
  EXPECT_EQ(bytes.substr(16, 8), std::string("\x07\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(bytes.substr(40, 12), std::string("\x09\0\0\0\0\0\0\0\x83\x92\x06\xe3", 12));
}

TEST(CheckpointHeader, SaysWhatIsWrong) {
  const std::string bytes = bytes_of(some_header());
  EXPECT_EQ(why("", 0), "it ends within its header: 0 of 64 bytes");
  EXPECT_EQ(why(bytes.substr(0, 63), 63), "it ends within its header: 63 of 64 bytes");
  EXPECT_EQ(why("PK\x03\x04 something else", 1064), "it is not a checkpoint of liblrun");
  EXPECT_EQ(why(bytes, 1063), "it is cut off: 999 of 1000 bytes");
  EXPECT_EQ(why(bytes, 1066), "it is damaged: 2 bytes follow its end");
  std::string newer = bytes;
  newer[8] = 2;
  EXPECT_EQ(why(sealed(newer), 1064), "it is of another version of liblrun: its format is 2");
  std::string nonsense = bytes;
  nonsense[32] = 5;  // part 5 of 5
  EXPECT_EQ(why(sealed(nonsense), 1064), "its header is damaged: it contradicts itself");
}

TEST(CheckpointHeader, SeesEveryChangedBit) {
  const std::string bytes = bytes_of(some_header());
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string changed = bytes;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    ASSERT_NE(why(changed, 1064), "accepted") << "bit " << bit;
  }
}

TEST(CheckpointParts, AreReadAsTheyWereWritten) {
  const std::vector<CheckpointPart> parts = {{0, 0}, {std::uint64_t{1} << 40, 0xFFFFFFFF}, {3, 4}};
  const std::string bytes = encode_checkpoint_parts(parts);
  EXPECT_EQ(decode_checkpoint_parts(bytes, 3), parts);
  EXPECT_EQ(decode_checkpoint_parts(bytes, 2), std::nullopt);
  EXPECT_EQ(decode_checkpoint_parts(bytes, 0xFFFFFFFF), std::nullopt) << "nothing of that size is allocated";
  EXPECT_EQ(decode_checkpoint_parts("", 0), std::nullopt);
}

}  // namespace
}  // namespace lrun::detail
