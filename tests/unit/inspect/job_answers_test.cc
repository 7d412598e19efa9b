#include "inspect/job_answers.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lrun::launcher {
namespace {

/// Of a job of two launchers, this one among them, which answers at once.
class JobAnswersTest : public ::testing::Test {
 protected:
  void ask(const std::string& words) {
    answers.ask(words, [this](const std::string& text) {
      told.push_back(answers_of_job(text));
      loop.stop();
    });
  }

  EventLoop loop;
  std::vector<std::string> asked;
  JobAnswers answers{loop, [this](const std::string& question) {
                       asked.push_back(question);
                       answers.add(numbered_answer(question_from(question), "own"));
                       return std::size_t{2};
                     }};
  std::vector<std::vector<std::string>> told;
};

TEST_F(JobAnswersTest, ComeOnceAllHaveAnswered) {
  ask("status");
  ask("status");
  EXPECT_EQ(asked, std::vector<std::string>{"1 status"}) << "one question for both";
  EXPECT_TRUE(told.empty());
  answers.add("1\nother");
  EXPECT_EQ(told, (std::vector<std::vector<std::string>>{{"own", "other"}, {"own", "other"}}));
  answers.add("1\nlate");
  ask("status");
  EXPECT_EQ(asked.back(), "2 status");
  answers.add("1\ntoo late");
  EXPECT_EQ(told.size(), 2U);
}

TEST_F(JobAnswersTest, LeaveOutLaunchersThatSayNothing) {
  ask("status");
  answers.add("what is this?");
  loop.run();
  EXPECT_EQ(told, (std::vector<std::vector<std::string>>{{"own"}}));
}

TEST_F(JobAnswersTest, OfDifferentQuestionsAreKeptApart) {
  ask("stack");
  ask("stack --brief");
  answers.add("2\nbrief");
  EXPECT_EQ(told, (std::vector<std::vector<std::string>>{{"own", "brief"}}));
  ask("dance");
  EXPECT_EQ(told.back(), std::vector<std::string>());
}

TEST(QuestionFrom, TakesOnlyWhatLaunchersKnow) {
  EXPECT_EQ(question_from("7 stack --brief"), (Question{7, Asked::kBriefStack}));
  EXPECT_EQ(question_from("7 standstill"), (Question{7, Asked::kStandstill}));
  for (const char* const text : {"", "7", "7 ", "x status", "-1 status", "7 status now"}) {
    EXPECT_EQ(question_from(text), Question()) << text;
  }
}

}  // namespace
}  // namespace lrun::launcher
