#include "rendezvous/job_state.h"

#include <gtest/gtest.h>

#include <string>

namespace lrun::launcher {
namespace {

TEST(JobState, HasTheOutcomeOfAJobThatIsOver) {
  for (const char* const outcome : {"", "it failed"}) {
    const JobState over{.outcome = outcome};
    EXPECT_EQ(job_state_from_json(to_json(over)), over);
  }
  EXPECT_FALSE(job_state_from_json(R"({"round":1,"attempt":0,"history":"","holder":"","members":[],"outcome":7})"));
}

TEST(JobState, FitsIntoAnEtcd) {
  JobState state{.round = 4, .history = "so far", .members = {"h/1", "i/2"}};
  EXPECT_EQ(json_for_etcd(state), to_json(state));
  state.members.assign(20'000, std::string(50, 'x'));
  const JobState shorter{.round = 4, .history = "so far"};
  EXPECT_EQ(job_state_from_json(json_for_etcd(state)), shorter);
}

TEST(JobState, IsReadAsItWasWritten) {
  const JobState state{.round = 4,
                       .attempt = 2,
                       .history = "a \"b\"",
                       .run_id = "20260101-000000-abcdef",
                       .leader = "h/1",
                       .members = {"h/1", "i/2"}};
  EXPECT_EQ(job_state_from_json(to_json(state)), state);
  for (const char* const text : {"", "{}", R"({"round":-1,"attempt":0,"history":"","holder":"","members":[]})",
                                 R"({"round":1,"attempt":0,"history":"","holder":"","members":[3]})"}) {
    EXPECT_FALSE(job_state_from_json(text)) << text;
  }
}

}  // namespace
}  // namespace lrun::launcher
