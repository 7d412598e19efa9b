#include "logs/prefix_template.h"

#include <gtest/gtest.h>

namespace lrun::launcher {
namespace {

std::string expanded(std::string_view text) { return expand_prefix(text, {"trainer", 3, 11, "host7"}); }

TEST(PrefixTemplate, ReplacesWhatItKnows) {
  EXPECT_EQ(expanded("[${role_name}${local_rank}]:"), "[trainer3]:");
  EXPECT_EQ(expanded("<$rank $hostname> "), "<11 host7> ");
  EXPECT_EQ(expanded("$rank${rank}"), "1111");
}

TEST(PrefixTemplate, LeavesTheRestAsItIs) {
  EXPECT_EQ(expanded(""), "");
  EXPECT_EQ(expanded("plain "), "plain ");
  EXPECT_EQ(expanded("${other} $other"), "${other} $other");
  EXPECT_EQ(expanded("$rank_x $ranks ${rank"), "$rank_x $ranks ${rank") << "names are taken whole";
  EXPECT_EQ(expanded("$ $1 ${} $"), "$ $1 ${} $");
}

TEST(PrefixTemplate, TwoDollarsAreOne) {
  EXPECT_EQ(expanded("$$rank"), "$rank");
  EXPECT_EQ(expanded("$$$rank"), "$11");
  EXPECT_EQ(expanded("cost$$"), "cost$");
}

}  // namespace
}  // namespace lrun::launcher
