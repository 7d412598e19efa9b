#include "rendezvous/admission.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "launcher_records.h"

namespace lrun::launcher {
namespace {

using namespace std::chrono_literals;
using test::node_at;

const SteadyTime kAdmitted{std::chrono::seconds(10'000)};

TEST(Admission, LetsInWhoFits) {
  const JoinRecord first = node_at("10.0.0.1");
  EXPECT_EQ(Admission().check(node_at("10.0.0.2"), {&first}, false, kAdmitted), std::nullopt);
  EXPECT_EQ(Admission().check(node_at("10.0.0.2"), {}, false, kAdmitted), std::nullopt) << "there is nothing to fit to";
}

TEST(Admission, RejectsARankThatIsTakenOnlyBeforeTheJobRuns) {
  const JoinRecord first = node_at("10.0.0.1", 1, 0);
  const JoinRecord second = node_at("10.0.0.2", 1, 0);
  EXPECT_EQ(Admission().check(second, {&first}, false, kAdmitted), rank_is_taken(second, first));
  EXPECT_EQ(Admission().check(second, {&first}, true, kAdmitted), std::nullopt) << "the place may become free";
}

TEST(Admission, KeepsANodeAwayThatLeftAgainAndAgain) {
  Admission admission;
  const JoinRecord node = node_at("10.0.0.1");
  for (int i = 0; i < 4; ++i) EXPECT_EQ(admission.note_departure(node, kAdmitted + i * 1min), "");
  EXPECT_EQ(admission.check(node, {}, true, kAdmitted + 4min), std::nullopt);
  EXPECT_NE(admission.note_departure(node, kAdmitted + 4min).find("5 times within 10m"), std::string::npos);
  const auto rejection = admission.check(node, {}, true, kAdmitted + 4min);
  ASSERT_TRUE(rejection);
  EXPECT_NE(rejection->why.find("in 6m"), std::string::npos) << rejection->why;
  EXPECT_EQ(admission.check(node_at("10.0.0.2"), {}, true, kAdmitted + 4min), std::nullopt);
  EXPECT_EQ(admission.check(node, {}, true, kAdmitted + 10min), std::nullopt);
}

TEST(Admission, NotesALineOnceAndShowsTheLastThree) {
  Admission admission;
  for (const char* const line : {"a", "b", "c", "d"}) EXPECT_TRUE(admission.note(line));
  EXPECT_FALSE(admission.note("a"));
  EXPECT_EQ(admission.notes_text(), "; b; c; d");
  int noted = 0;
  for (int i = 0; i < 200; ++i) noted += admission.note(std::to_string(i)) ? 1 : 0;
  EXPECT_EQ(noted, 60);
}

TEST(Admission, WarnsOnceOfCommandsThatDiffer) {
  Admission admission;
  JoinRecord first = node_at("10.0.0.1");
  JoinRecord second = node_at("10.0.0.2");
  first.program = second.program = "train.py";
  EXPECT_EQ(admission.compare_commands(second, first), "");
  second.command_digest = "bb";
  EXPECT_NE(admission.compare_commands(second, first).find("'--rdzv-id'"), std::string::npos);
  EXPECT_EQ(admission.compare_commands(second, first), "");
}

}  // namespace
}  // namespace lrun::launcher
