#include "run/stored_zip.h"

#include <gtest/gtest.h>

namespace lrun::launcher {
namespace {

TEST(StoredZip, HasTheFileItsChecksumAndItsDirectory) {
  const std::string archive = stored_zip("a.txt", "123456789");
  const std::string checksum = "\x26\x39\xF4\xCB";  // known of these digits
  ASSERT_EQ(archive.size(), 30U + 5 + 9 + 46 + 5 + 22);
  EXPECT_EQ(archive.substr(0, 4), "PK\x03\x04");
  EXPECT_EQ(archive.substr(14, 4), checksum);
  EXPECT_EQ(archive.substr(30, 14), "a.txt123456789");
  EXPECT_EQ(archive.substr(44, 4), "PK\x01\x02");
  EXPECT_EQ(archive.substr(44 + 16, 4), checksum);
  EXPECT_EQ(archive.substr(44 + 46, 5), "a.txt");
  EXPECT_EQ(archive.substr(95, 4), "PK\x05\x06");
  EXPECT_EQ(static_cast<unsigned char>(archive[95 + 16]), 44U) << "where the directory begins";
}

}  // namespace
}  // namespace lrun::launcher
