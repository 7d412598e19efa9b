#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <string>

#include "support/beside.h"
#include "support/lrun_process.h"

namespace lrun::test {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

std::string explained(const LrunProcess& run, const std::vector<std::string>& words = {"explain"}) {
  Beside explain(run, words);
  EXPECT_EQ(explain.wait().code, 0) << explain.err();
  return explain.out();
}

TEST(Explain, NamesRankLogAndLineOfAFailureAndKeepsSecrets) {
  LrunProcess run({"-n", "2", "sh", "-c",
                   "echo begin >&2; [ $RANK = 0 ] && exec sleep 1000; echo \"bad HF_TOKEN=$2\" >&2; exit 3", "sh",
                   "--api-key", "sesame"});
  ASSERT_EQ(run.wait().code, 3) << run.err();
  const std::string id = run.run_folder().filename().string();
  const std::string log = (run.run_folder() / "attempt_0" / "1" / "stderr.log").string();
  const std::string text = explained(run);
  EXPECT_THAT(text, AllOf(StartsWith("run " + id + ", ended "), HasSubstr("s ago: worker failed, exit code 3 after "),
                          HasSubstr("error: rank 1 exited with code 3\n"), HasSubstr("\n  | bad HF_TOKEN=***\n"),
                          HasSubstr("\nothers: rank 0: stopped by lrun: SIGTERM\n"),
                          HasSubstr("\nlog: " + log + ":2\n"), EndsWith("\nnext: lrun logs " + id + " 1 --tail 50\n")));
  const std::string json = explained(run, {"explain", "--json", id});
  EXPECT_EQ(Json::parse(json)["rank"], 1);
  EXPECT_EQ(Json::parse(json)["log_line"], 2);
  EXPECT_THAT(text + json, AllOf(HasSubstr("--api-key '***'"), Not(HasSubstr("sesame"))));
}

TEST(Explain, TellsOfEarlierAttempts) {
  LrunProcess run({"-n", "1", "--max-restarts", "1", "--restart-backoff", "0s", "sh", "-c", "exit 7"});
  ASSERT_EQ(run.wait().code, 7) << run.err();
  EXPECT_THAT(explained(run), HasSubstr("\ntried: attempt 0: rank 0: exited with code 7\n"));
}

TEST(Explain, NamesAStderrOfAnySize) {
  LrunProcess run({"-n", "1", "sh", "-c", "echo boom >&2; exit 3"});
  ASSERT_EQ(run.wait().code, 3) << run.err();
  const std::filesystem::path log = run.run_folder() / "attempt_0" / "0" / "stderr.log";
  std::filesystem::resize_file(log, std::uintmax_t{100} << 20U);
  EXPECT_THAT(explained(run), HasSubstr("\nlog: " + log.string() + "\n"));
}

TEST(Explain, SaysThatARunGoesOn) {
  LrunProcess run({"-n", "2", "sh", "-c", "echo here; exec sleep 1000"});
  ASSERT_TRUE(run.wait_for("[0] here") && run.wait_for("[1] here") && has_socket(run));
  const std::string text = explained(run);
  EXPECT_THAT(text, AllOf(HasSubstr(": running after "), HasSubstr("running for "), Not(HasSubstr("\nothers: ")),
                          HasSubstr("\nnext: lrun status ")));
}

TEST(Explain, OfARunThatSucceededIsShort) {
  LrunProcess run({"-n", "2", "true"});
  ASSERT_EQ(run.wait().code, 0) << run.err();
  EXPECT_THAT(explained(run), AllOf(HasSubstr(": succeeded, exit code 0"), HasSubstr("; 2 workers: true\n"),
                                    HasSubstr("\nothers: ranks 0-1: exited with code 0\n")));
}

TEST(Explain, WithoutARunSaysSo) {
  LrunProcess explain({"explain"});
  EXPECT_EQ(explain.wait().code, 125);
  EXPECT_THAT(explain.err(), StartsWith("lrun: error: no run is kept in '"));
}

}  // namespace
}  // namespace lrun::test
