#include "base/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace lrun {
namespace {

TEST(ValidBytes, AreAllOfATextThatIsUtf8) {
  for (const std::string text : {"", "loss 0.5", "Größe €", "\U0001f600", "a\nb"}) {
    EXPECT_EQ(valid_bytes(text), text.size()) << text;
  }
  EXPECT_EQ(valid_bytes(std::string("a\0b", 3)), 3);
}

TEST(ValidBytes, StandBeforeTheFirstByteThatIsNot) {
  EXPECT_EQ(valid_bytes("\xff"), 0);
  EXPECT_EQ(valid_bytes("Gr\xf6n"), 2) << "Latin 1";
  EXPECT_EQ(valid_bytes("ok \xe2\x82"), 3) << "a character that ends too early";
  EXPECT_EQ(valid_bytes("\xc0\xaf"), 0) << "an overlong form";
  EXPECT_EQ(valid_bytes("a\xed\xa0\x80"), 1) << "a surrogate";
}

}  // namespace
}  // namespace lrun
