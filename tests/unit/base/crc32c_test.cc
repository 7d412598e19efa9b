#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>

namespace lrun {
namespace {

std::string rising(std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t index = 0; index < size; ++index) bytes[index] = static_cast<char>(index);
  return bytes;
}

TEST(Crc32c, IsWhatTheStandardSays) {
  // RFC 3720, B.4, and the check value of the catalogue of CRCs.
  EXPECT_EQ(crc32c(""), 0U);
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62A8AB43U);
  EXPECT_EQ(crc32c(rising(32)), 0x46DD794EU);
}

TEST(Crc32c, IsTheSameWithoutTheInstruction) {
  const std::string bytes = rising(300);
  for (std::size_t begin = 0; begin < 9; ++begin) {
    for (std::size_t size = 0; begin + size <= bytes.size(); ++size) {
      const std::string_view part(bytes.data() + begin, size);
      ASSERT_EQ(crc32c(part, 77), crc32c_by_table(part, 77)) << size << " bytes from " << begin;
    }
  }
  EXPECT_EQ(crc32c_by_table("123456789"), 0xE3069283U);
}

TEST(Crc32c, GoesOnOverParts) {
  const std::string bytes = rising(100);
  const std::string_view all = bytes;
  for (std::size_t cut = 0; cut <= all.size(); ++cut) {
    ASSERT_EQ(crc32c(all.substr(cut), crc32c(all.substr(0, cut))), crc32c(all)) << "cut at " << cut;
  }
}

}  // namespace
}  // namespace lrun
