#include "run/fork_server_answer.h"

#include <gtest/gtest.h>

namespace lrun::launcher {
namespace {

TEST(ForkServerAnswers, AreALetterAndAText) {
  EXPECT_EQ(parse_fork_server_answer("H"), ForkServerAnswer{.kind = ForkServerAnswer::Kind::kHello});
  EXPECT_EQ(parse_fork_server_answer("R"), ForkServerAnswer{.kind = ForkServerAnswer::Kind::kReady});
  EXPECT_EQ(parse_fork_server_answer("Ra note"),
            (ForkServerAnswer{.kind = ForkServerAnswer::Kind::kReady, .text = "a note"}));
  EXPECT_EQ(parse_fork_server_answer("P4711"),
            (ForkServerAnswer{.kind = ForkServerAnswer::Kind::kForked, .pids = {4711}}));
  EXPECT_EQ(parse_fork_server_answer("P4711 12 13"),
            (ForkServerAnswer{.kind = ForkServerAnswer::Kind::kForked, .pids = {4711, 12, 13}}));
  EXPECT_EQ(parse_fork_server_answer("Uwhy not"),
            (ForkServerAnswer{.kind = ForkServerAnswer::Kind::kUnfit, .text = "why not"}));
}

TEST(ForkServerAnswers, OfAnyOtherFormAreNone) {
  for (const char* const text :
       {"", "X", "H1", "P", "P0", "P-1", "P1x", "P99999999999999", "P1 ", "P 1", "P1  2", "P1 0"}) {
    EXPECT_EQ(parse_fork_server_answer(text), std::nullopt) << text;
  }
  EXPECT_EQ(parse_fork_server_answer("U" + std::string(kMostAnswerBytes, 'x')), std::nullopt) << "too long";
}

}  // namespace
}  // namespace lrun::launcher
