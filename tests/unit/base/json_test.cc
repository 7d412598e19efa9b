#include "base/json.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdint>

namespace lrun {
namespace {

TEST(Json, TextIsReadBackAsItWas) {
  for (const std::string text : {"", "plain text", "quote \" and \\", "tab\tline\n", "\x01\x7f", "é 日本"}) {
    EXPECT_EQ(nlohmann::json::parse(json_string(text)).get<std::string>(), text);
  }
  EXPECT_EQ(json_array({}), "[]");
  EXPECT_EQ(nlohmann::json::parse(json_array({"a", "\"", ""})).get<std::vector<std::string>>(),
            (std::vector<std::string>{"a", "\"", ""}));
}

TEST(Json, BytesThatAreNoTextBecomeTheReplacementCharacter) {
  EXPECT_EQ(nlohmann::json::parse(json_string("a\xff")).get<std::string>(), "a\xef\xbf\xbd");
}

TEST(Json, NumbersThatDoNotFitAreRefused) {
  using nlohmann::json;
  EXPECT_EQ(json_integer(json::parse("-3")), -3);
  EXPECT_EQ(json_integer<std::int64_t>(json::parse("2305843009213693952")), std::int64_t{1} << 61);
  for (const char* const text : {"1e300", "0.5", "\"1\"", "null", "2147483648", "-9223372036854775808"}) {
    EXPECT_THROW(json_integer(json::parse(text)), json::type_error) << text;
  }
  EXPECT_THROW(json_integer<std::int64_t>(json::parse("2305843009213693953")), json::type_error);
}

}  // namespace
}  // namespace lrun
