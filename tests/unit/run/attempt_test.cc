#include "run/attempt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <string>

#include "unit/run/attempt_fixture.h"

namespace lrun::launcher {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

class AttemptTest : public AttemptFixture {};

TEST_F(AttemptTest, WorkersHaveTheContractsVariables) {
  plan_for("echo $RANK $LOCAL_RANK $WORLD_SIZE $MASTER_ADDR $MASTER_PORT $TORCHELASTIC_RESTART_COUNT", 2);
  supervise();
  run_until_finished();
  EXPECT_EQ(log_of(0), "0 0 2 127.0.0.1 29500 0\n");
  EXPECT_EQ(log_of(1), "1 1 2 127.0.0.1 29500 0\n");
  EXPECT_EQ(attempt->supervisor().outcome().records.size(), 2U);
}

TEST_F(AttemptTest, StandardInputIsEmpty) {
  plan_for("cat; echo end");
  supervise();
  run_until_finished();
  EXPECT_EQ(log_of(0), "end\n");
}

TEST_F(AttemptTest, AProgramThatCannotRunLeavesNothing) {
  plan_for("");
  plan->argv = {"/nonexistent/program"};
  const std::optional<StartFailure> failure = start();
  ASSERT_TRUE(failure);
  EXPECT_TRUE(failure->exec_failed);
  EXPECT_EQ(failure->error_number, ENOENT);
  EXPECT_THAT(attempt->workers(), IsEmpty());
}

TEST_F(AttemptTest, ManyWorkersAreStartedByTheLoop) {
  // More than are started at least in one part.
  plan_for("exit 0", 150);
  ASSERT_FALSE(start());
  const bool is_slow = attempt->is_starting();
  attempt->supervise({.finished =
                          [this] {
                            finished = true;
                            loop.stop();
                          },
                      .started = [this] { ++started; },
                      .start_failed = {}});
  run_until_finished();
  EXPECT_FALSE(attempt->is_starting());
  EXPECT_EQ(started, is_slow ? 1 : 0);
  EXPECT_EQ(attempt->supervisor().outcome().records.size(), 150U);
}

TEST_F(AttemptTest, WorkersThatEndHaveNoPidAnyMore) {
  plan_for("if [ $RANK = 0 ]; then exit 0; fi; echo ready; exec sleep 1000", 2);
  supervise();
  run_until([this] { return attempt->running().size() == 1; });
  EXPECT_EQ(attempt->processes().at(0).pid, 0);
  EXPECT_EQ(attempt->running().at(0).rank, 1);
  EXPECT_THAT(attempt->without_connection(), ElementsAre(1)) << "nobody serves a store there";
  stop();
  run_until_finished();
}

TEST_F(AttemptTest, AConnectionOfAWorkersChildIsTheWorkers) {
  plan_for("sleep 1000 & echo child $!; wait");
  supervise();
  out.read_until_it_says("\n");
  const pid_t child = std::stoi(out.text.substr(out.text.find("child ") + 6));
  EXPECT_EQ(attempt->first_connection(child), 0);
  EXPECT_EQ(attempt->first_connection(child), std::nullopt) << "only the first one is told";
  EXPECT_EQ(attempt->first_connection(::getpid()), std::nullopt);
  stop();
  run_until_finished();
}

TEST_F(AttemptTest, StepsAreCountedWhereWorkersReportThem) {
  // What liblrun's ProgressTeller writes: three integers of 8 bytes.
  plan_for("printf '\\005\\0\\0\\0\\0\\0\\0\\0\\011\\0\\0\\0\\0\\0\\0\\0\\007\\0\\0\\0\\0\\0\\0\\0' >&3", 2);
  plan->hang_timeout.value = Duration(60'000);
  supervise();
  run_until_finished();
  EXPECT_GT(attempt->steps(), 0U);
  EXPECT_THAT(attempt->first_steps(), Not(IsEmpty()));
}

TEST_F(AttemptTest, WrittenLogsAreNamedAndSilentWorkersHaveNone) {
  plan_for("exit 0");
  supervise();
  run_until_finished();
  EXPECT_EQ(attempt->written_logs(), fs::path());
  EXPECT_FALSE(fs::exists(temporary / "attempt_0"));
}

TEST_F(AttemptTest, LogsThatWereWrittenAreNamed) {
  plan_for("echo words");
  supervise();
  run_until_finished();
  EXPECT_EQ(attempt->written_logs(), temporary / "attempt_0");
}

TEST_F(AttemptTest, ItsEndKillsWhatStillRuns) {
  plan_for("echo ready; exec sleep 1000");
  supervise();
  out.read_until_it_says("ready");
  const pid_t pid = attempt->workers().front().process.pid();
  attempt.reset();
  EXPECT_EQ(::kill(pid, 0), -1);
}

TEST(AttemptFiles, WithoutAFolderThereAreNone) {
  const AttemptFiles files(nullptr, "attempt_0");
  EXPECT_TRUE(files.path().empty());
  EXPECT_FALSE(files.open("stacks.txt"));
  files.make_rank_folders(NodePlan());
}

TEST(AttemptFiles, AStreamsFileIsMadeInTheFolderOfItsRank) {
  const TemporaryFolder temporary;
  const Folder folder = Folder::make(temporary.path());
  const AttemptFiles files(&folder, "attempt_2");
  EXPECT_EQ(files.path(), temporary / "attempt_2");
  put(files.open_stream(3, LogStream::kErr), "text");
  EXPECT_EQ(content_of(temporary / "attempt_2/3/stderr.log"), "text");
  EXPECT_EQ(files.path_of(3, LogStream::kErr), temporary / "attempt_2/3/stderr.log");
}

TEST(AttemptFiles, AFileThatIsAPipeIsRefused) {
  const TemporaryFolder temporary;
  const Folder folder = Folder::make(temporary.path());
  const AttemptFiles files(&folder, "attempt_0");
  fs::create_directories(temporary / "attempt_0/0");
  ASSERT_EQ(::mkfifo((temporary / "attempt_0/0/stdout.log").c_str(), 0600), 0);
  try {
    (void)files.open_stream(0, LogStream::kOut);
    FAIL() << "nobody would read the pipe";
  } catch (const std::system_error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("which is not a regular file"));
  }
}

}  // namespace
}  // namespace lrun::launcher
