#include "base/child_question.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <optional>

namespace lrun {
namespace {

using namespace std::chrono_literals;
using End = ChildAnswer::End;

constexpr Duration kPatience(60'000);

/// What comes of a question, asked in a loop that is seen to go on meanwhile.
ChildAnswer answer_to(const std::function<std::string()>& question, Duration limit) {
  EventLoop loop;
  std::optional<ChildAnswer> result;
  const ChildQuestion asked(loop, question, limit, [&](const ChildAnswer& answer) {
    result = answer;
    loop.stop();
  });
  const EventLoop::Timer patience = loop.after(kPatience, [&] { loop.stop(); });
  loop.run();
  return result.value_or(ChildAnswer{});
}

TEST(ChildQuestion, IsAnswered) {
  const std::string text(100'000, 'x');
  EXPECT_EQ(answer_to([&] { return std::string(text); }, kPatience),
            (ChildAnswer{.end = End::kAnswered, .text = text}));
  EXPECT_EQ(answer_to([]() -> std::string { ::_exit(3); }, kPatience).end, End::kCrashed);
}

std::string never() {
  while (true) ::pause();
}

TEST(ChildQuestion, EndsAtItsLimit) { EXPECT_EQ(answer_to(never, 20ms).end, End::kTimedOut); }

TEST(ChildQuestion, LetsTheLoopGoOn) {
  EventLoop loop;
  bool answered = false;
  std::optional<ChildQuestion> asked;
  asked.emplace(loop, never, kPatience, [&](const ChildAnswer&) { answered = true; });
  int turns = 0;
  const std::function<void()> turn = [&] {
    if (++turns == 3) loop.stop();
  };
  const EventLoop::Timer first = loop.after(1ms, turn);
  const EventLoop::Timer second = loop.after(2ms, turn);
  const EventLoop::Timer third = loop.after(3ms, turn);
  loop.run();
  asked.reset();
  EXPECT_EQ(turns, 3);
  EXPECT_FALSE(answered) << "nothing is told once it is gone";
}

TEST(ChildQuestion, MayBeDestroyedByItsAnswer) {
  EventLoop loop;
  std::optional<ChildQuestion> asked;
  std::string text;
  asked.emplace(
      loop, [] { return std::string("yes"); }, kPatience,
      [&](const ChildAnswer& answer) {
        text = answer.text;
        asked.reset();
        loop.stop();
      });
  loop.run();
  EXPECT_EQ(text, "yes");
}

}  // namespace
}  // namespace lrun
