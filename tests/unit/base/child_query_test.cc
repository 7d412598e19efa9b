#include "base/child_query.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <optional>
#include <stdexcept>

namespace lrun {
namespace {

using namespace std::chrono_literals;
using End = ChildAnswer::End;

constexpr Duration kEnough(20'000);

TEST(QueryInChild, GivesTheAnswerOfAnotherProcess) {
  const ChildAnswer answer = query_in_child([] { return std::to_string(getppid()) + "\n"; }, kEnough);
  EXPECT_EQ(answer, (ChildAnswer{End::kAnswered, std::to_string(getpid()) + "\n", 0, 0}));
}

TEST(QueryInChild, TakesLongAnswersWhole) {
  const std::string text(1 << 20, 'x');
  EXPECT_EQ(query_in_child([&] { return std::string(text); }, kEnough).text, text);
}

TEST(QueryInChild, NamesTheSignalOfACrash) {
  EXPECT_EQ(query_in_child(
                []() -> std::string {
                  raise(SIGABRT);
                  return "no";
                },
                kEnough),
            (ChildAnswer{End::kCrashed, "", SIGABRT, 0}));
}

TEST(QueryInChild, TakesAnExceptionOrAnEarlyEndForACrash) {
  EXPECT_EQ(query_in_child([]() -> std::string { throw std::runtime_error("no"); }, kEnough).end, End::kCrashed);
  EXPECT_EQ(query_in_child([]() -> std::string { _exit(0); }, kEnough).end, End::kCrashed);
}

TEST(QueryInChild, EndsAndReapsAChildThatDoesNotAnswer) {
  const ChildAnswer answer = query_in_child(
      []() -> std::string {
        while (true) pause();
      },
      Duration(20));
  EXPECT_EQ(answer, (ChildAnswer{End::kTimedOut, "", 0, 0}));
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "nothing is left to reap";
  EXPECT_EQ(errno, ECHILD);
}

TEST(QueryInChild, KeepsWhatTheChildPrintsOffTheTerminal) {
  testing::internal::CaptureStderr();
  const ChildAnswer answer = query_in_child(
      [] {
        EXPECT_EQ(write(STDERR_FILENO, "noise", 5), 5);
        return std::string("fine");
      },
      kEnough);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(answer.text, "fine");
}

/// The answer to a query beside a loop.
ChildAnswer answer_to(const std::function<std::string()>& query, Duration limit) {
  EventLoop loop;
  std::optional<ChildAnswer> result;
  const ChildQuery asked(loop, query, limit, [&](const ChildAnswer& answer) {
    result = answer;
    loop.stop();
  });
  const EventLoop::Timer patience = loop.after(kEnough, [&] { loop.stop(); });
  loop.run();
  return result.value_or(ChildAnswer{});
}

TEST(ChildQuery, IsAnswered) {
  const std::string text(100'000, 'x');
  EXPECT_EQ(answer_to([&] { return std::string(text); }, kEnough), (ChildAnswer{.end = End::kAnswered, .text = text}));
  EXPECT_EQ(answer_to([]() -> std::string { ::_exit(3); }, kEnough).end, End::kCrashed);
}

std::string never() {
  while (true) ::pause();
}

TEST(ChildQuery, EndsAtItsLimit) { EXPECT_EQ(answer_to(never, 20ms).end, End::kTimedOut); }

TEST(ChildQuery, LetsTheLoopGoOn) {
  EventLoop loop;
  bool answered = false;
  std::optional<ChildQuery> asked;
  asked.emplace(loop, never, kEnough, [&](const ChildAnswer&) { answered = true; });
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

TEST(ChildQuery, MayBeDestroyedByItsAnswer) {
  EventLoop loop;
  std::optional<ChildQuery> asked;
  std::string text;
  asked.emplace(
      loop, [] { return std::string("yes"); }, kEnough,
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
