#include "run/run_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <sys/un.h>

#include <filesystem>
#include <utility>

#include "support/log_test_support.h"
#include "support/recording_sink.h"
#include "unit/plan/planning.h"

namespace lrun::launcher {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

Fd connection_to(const fs::path& path) {
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.string().copy(address.sun_path, sizeof address.sun_path - 1);
  const int error = ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  return error == 0 ? std::move(socket) : Fd();
}

class RunRecordTest : public ::testing::Test {
 protected:
  RunRecordTest()
      : plan(plan_of(request_for("2"), cpu_node())), environment(environment_with({{"LRUN_STATE", path()}})) {}

  [[nodiscard]] std::string path() const { return state.path().string(); }
  [[nodiscard]] fs::path run_folder() const { return state / "demo"; }

  EventLoop loop;
  TemporaryFolder state;
  LaunchPlan plan;
  Environment environment;
  RecordingSink sink;
};

TEST_F(RunRecordTest, CommandsAreAnsweredFromOpenToClose) {
  RunRecord record(loop, plan, environment, sink);
  record.set_answer([](std::string_view command, const ControlSocket::Reply& reply) {
    reply("{\"heard\":\"" + std::string(command) + "\"}");
  });
  record.make_folders(true);
  EXPECT_FALSE(fs::exists(run_folder() / "control.sock")) << "its workers do not run yet";
  record.open();
  Fd socket = connection_to(run_folder() / "control.sock");
  ASSERT_TRUE(socket);
  (void)write_all(socket.get(), "status\n");
  Reader reader(loop, std::move(socket));
  reader.read_until_it_says("\n");
  EXPECT_EQ(reader.text, "{\"heard\":\"status\"}\n");
  record.close();
  EXPECT_FALSE(fs::exists(run_folder() / "control.sock"));
}

TEST_F(RunRecordTest, TheResultIsInTheFolderAndInTheEvents) {
  RunRecord record(loop, plan, environment, sink);
  record.make_folders(true);
  record.open();
  record.write_result(judge({RunEnd::Kind::kRequested}, {}), {}, "the text", "the hint");
  const auto result = nlohmann::json::parse(content_of(run_folder() / "result.json"));
  EXPECT_EQ(result.at("text"), "the text");
  EXPECT_EQ(result.at("hint"), "the hint");
  EXPECT_EQ(result.at("reason"), "requested");
  EXPECT_EQ(fs::status(run_folder() / "result.json").permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(RunRecordTest, WithoutAFolderEverythingIsSilent) {
  environment.set("LRUN_STATE", "/proc/nowhere");
  plan.output.files = false;
  RunRecord record(loop, plan, environment, sink);
  record.make_folders(false);
  EXPECT_THAT(sink.text(), HasSubstr("no record of this run will be kept"));
  sink.entries.clear();
  record.make_folders(false);
  record.open();
  record.events().noted("killing");
  record.write_result(judge({RunEnd::Kind::kRequested}, {}), {}, "", "");
  record.prune_others(true);
  record.close();
  EXPECT_EQ(sink.text(), "") << "it was said once";
}

TEST_F(RunRecordTest, ResultsThatCannotBeWrittenAreOneWarning) {
  RunRecord record(loop, plan, environment, sink);
  record.make_folders(true);
  record.open();
  fs::create_directory(run_folder() / "result.json");
  record.write_result(judge({RunEnd::Kind::kRequested}, {}), {}, "", "");
  EXPECT_THAT(sink.text(), HasSubstr("no result.json: "));
}

TEST_F(RunRecordTest, ARunThatDidNotBeginLeavesNothing) {
  RunRecord record(loop, plan, environment, sink);
  record.make_folders(true);
  record.remove();
  EXPECT_FALSE(fs::exists(run_folder()));
}

}  // namespace
}  // namespace lrun::launcher
