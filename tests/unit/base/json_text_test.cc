#include "base/json_text.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace lrun {
namespace {

TEST(JsonText, IsReadBackAsItWas) {
  for (const std::string text : {"", "plain text", "quote \" and \\", "tab\tline\n", "\x01\x7f", "é 日本"}) {
    EXPECT_EQ(nlohmann::json::parse(json_string(text)).get<std::string>(), text);
  }
  EXPECT_EQ(json_array({}), "[]");
  EXPECT_EQ(nlohmann::json::parse(json_array({"a", "\"", ""})).get<std::vector<std::string>>(),
            (std::vector<std::string>{"a", "\"", ""}));
}

TEST(JsonText, BytesThatAreNoTextBecomeTheReplacementCharacter) {
  EXPECT_EQ(nlohmann::json::parse(json_string("a\xff")).get<std::string>(), "a\xef\xbf\xbd");
}

}  // namespace
}  // namespace lrun
