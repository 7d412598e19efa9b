#include "run/preflight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/user_error.h"
#include "process/exit_codes.h"
#include "support/recording_sink.h"
#include "support/temporary_folder.h"
#include "unit/plan/planning.h"

namespace lrun::launcher {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class PreflightTest : public ::testing::Test {
 protected:
  PreflightTest() {
    request.command = {"./train"};
    plan = plan_of(request, cpu_node());
  }
  /// The text about a missing program.
  std::string refusal_of_program(const std::string& program) {
    plan.argv = request.command = {program};
    EXPECT_EQ(verdict_of({ENOENT, false}).exit_code, kExitNotFound);
    sink.print_error(program_error({ENOENT, false}, request, plan));
    return sink.text();
  }

  LaunchRequest request = request_for("2");
  LaunchPlan plan;
  PreparedStart start;
  RecordingSink sink;
  test::TemporaryFolder folder;
};

TEST_F(PreflightTest, FindsAProgramThatIsNotThere) {
  EXPECT_FALSE(find_program_problem(start, plan, request));
  start.executable.error_number = ENOENT;
  const auto problem = find_program_problem(start, plan, request);
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->error_number, ENOENT);
  EXPECT_FALSE(problem->given_to_python);
  start.runs_program = false;
  EXPECT_FALSE(find_program_problem(start, plan, request)) << "each worker has a wrapper";
}

TEST_F(PreflightTest, FindsAScriptThatIsNotThere) {
  request.command = {(folder / "train.py").string()};
  plan.argv = {"/usr/bin/python3", request.command.front()};
  const auto problem = find_program_problem(start, plan, request);
  ASSERT_TRUE(problem);
  EXPECT_TRUE(problem->given_to_python);
  (void)folder.script("train.py", "");
  EXPECT_FALSE(find_program_problem(start, plan, request));
}

TEST_F(PreflightTest, NamesTheFileThatWasMeant) {
  (void)folder.script("train.py", "");
  EXPECT_THAT(refusal_of_program((folder / "trian.py").string()), HasSubstr((folder / "train.py").string()));
  EXPECT_THAT(refusal_of_program((folder / "trian").string()), HasSubstr((folder / "train.py").string()));
}

TEST_F(PreflightTest, NamesTheFolderThatHasTheFile) {
  const std::string script = folder.script("train.py", "");
  std::filesystem::create_directory(folder / "data");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder / "data");
  EXPECT_THAT(refusal_of_program("train.py"),
              HasSubstr("'train.py' is in the folder above '" + std::filesystem::current_path().string() +
                        "': start lrun there, or name '../train.py'"));
  std::filesystem::current_path(before);
}

TEST_F(PreflightTest, NamesTheScriptBehindAWordTooMany) {
  const std::string script = folder.script("train.py", "");
  plan.argv = request.command = {"launch", "--num_processes", "2", script};
  sink.print_error(program_error({ENOENT, false}, request, plan));
  EXPECT_THAT(sink.text(), HasSubstr("leave 'launch' out if '" + script + "' is the program: 'lrun [options]"));
}

TEST_F(PreflightTest, NamesTheHostThatStandsApart) {
  const std::string script = folder.script("train.py", "");
  request.hosts = {HostList{"a:2", {}}, Source::kFlag, "-H"};
  plan.argv = request.command = {"b:2", script};
  sink.print_error(program_error({ENOENT, false}, request, plan));
  EXPECT_THAT(sink.text(), HasSubstr("'-H a:2,b:2'"));
}

TEST_F(PreflightTest, NamesTheUnitThatStandsApart) {
  EXPECT_THAT(refusal_of_program("min"), HasSubstr("'--timeout 10m'"));
}

TEST_F(PreflightTest, NamesTheFileWhoseNameHasBlanks) {
  const std::string script = folder.script("my train.py", "");
  const std::string typed = script.substr(0, script.find(' '));
  plan.argv = request.command = {typed, "train.py", "--lr", "1"};
  sink.print_error(program_error({ENOENT, false}, request, plan));
  EXPECT_THAT(sink.text(), HasSubstr("put the name in quotes: \"" + script + "\""));
}

TEST_F(PreflightTest, NamesTheOptionThatWasMeant) {
  const auto refusal_of = [this](const std::vector<std::string>& words) {
    plan.argv = request.command = words;
    sink.print_error(program_error({ENOENT, false}, request, plan));
    return sink.text();
  };
  EXPECT_THAT(refusal_of({"devices=2", "a.py"}), HasSubstr("did you mean '--devices=2'?"));
  EXPECT_THAT(refusal_of({"max-restarts", "7", "a.py"}), HasSubstr("did you mean '--max-restarts 7'?"));
  EXPECT_THAT(refusal_of({"x4", "a.py"}), HasSubstr("did you mean '-n 4'?"));
  EXPECT_THAT(refusal_of({"A=1", "a.py"}), HasSubstr("'--env A=1'"));
  EXPECT_THAT(refusal_of({"MASTER_PORT=29500", "a.py"}), HasSubstr("lrun itself gives 'MASTER_PORT'"));
  EXPECT_THAT(refusal_of({"version"}), HasSubstr("did you mean 'lrun --version'?"));
}

TEST_F(PreflightTest, NamesTheFolderThatIsNotThere) {
  EXPECT_THAT(refusal_of_program((folder / "x" / "y" / "train.py").string()),
              HasSubstr("there is no folder '" + (folder / "x").string() + "'"));
  EXPECT_THAT(refusal_of_program("$HOME/train.py"), HasSubstr("outside of single quotes"));
}

TEST_F(PreflightTest, NamesTheVerbThatWasMeant) { EXPECT_THAT(refusal_of_program("staus"), HasSubstr("lrun status")); }

TEST_F(PreflightTest, AFolderForLogsIsMadeOrRefused) {
  plan.log_dir.value = (folder / "logs").string();
  check_log_folder(plan);
  EXPECT_TRUE(std::filesystem::is_directory(folder / "logs"));
  plan.log_dir.value = "/proc/logs";
  EXPECT_THROW(check_log_folder(plan), UserError);
  plan.log_dir.value = "/dev/null";
  check_log_folder(plan);
}

}  // namespace
}  // namespace lrun::launcher
