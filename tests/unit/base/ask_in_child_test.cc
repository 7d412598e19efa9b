#include "base/ask_in_child.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <stdexcept>

namespace lrun {
namespace {

using End = ChildAnswer::End;
constexpr Duration kEnough(20'000);

TEST(AskInChild, GivesTheAnswerOfAnotherProcess) {
  const ChildAnswer answer = ask_in_child([] { return std::to_string(getppid()) + "\n"; }, kEnough);
  EXPECT_EQ(answer, (ChildAnswer{End::kAnswered, std::to_string(getpid()) + "\n", 0, 0}));
}

TEST(AskInChild, TakesLongAnswersWhole) {
  const std::string text(1 << 20, 'x');
  EXPECT_EQ(ask_in_child([&] { return std::string(text); }, kEnough).text, text);
}

TEST(AskInChild, NamesTheSignalOfACrash) {
  EXPECT_EQ(ask_in_child(
                []() -> std::string {
                  raise(SIGABRT);
                  return "no";
                },
                kEnough),
            (ChildAnswer{End::kCrashed, "", SIGABRT, 0}));
}

TEST(AskInChild, TakesAnExceptionOrAnEarlyEndForACrash) {
  EXPECT_EQ(ask_in_child([]() -> std::string { throw std::runtime_error("no"); }, kEnough).end, End::kCrashed);
  EXPECT_EQ(ask_in_child([]() -> std::string { _exit(0); }, kEnough).end, End::kCrashed);
}

TEST(AskInChild, EndsAndReapsAChildThatDoesNotAnswer) {
  const ChildAnswer answer = ask_in_child(
      []() -> std::string {
        while (true) pause();
      },
      Duration(20));
  EXPECT_EQ(answer, (ChildAnswer{End::kTimedOut, "", 0, 0}));
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "nothing is left to reap";
  EXPECT_EQ(errno, ECHILD);
}

TEST(AskInChild, KeepsWhatTheChildPrintsOffTheTerminal) {
  testing::internal::CaptureStderr();
  const ChildAnswer answer = ask_in_child(
      [] {
        EXPECT_EQ(write(STDERR_FILENO, "noise", 5), 5);
        return std::string("fine");
      },
      kEnough);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(answer.text, "fine");
}

}  // namespace
}  // namespace lrun
