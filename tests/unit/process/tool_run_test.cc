#include "process/tool_run.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>

namespace lrun {
namespace {

ToolOutcome run(const std::string& script, Duration limit = Duration(60'000), std::size_t most_bytes = 1 << 20) {
  EventLoop loop;
  ToolOutcome result;
  ToolRun tool(loop, {{"/bin/sh", "-c", script}, {"WORD=value"}, limit, most_bytes}, [&](ToolOutcome outcome) {
    result = std::move(outcome);
    loop.stop();
  });
  loop.run();
  return result;
}

TEST(ToolRun, CollectsWhatItSaysAndHowItEnded) {
  const ToolOutcome outcome = run("echo $WORD; echo wrong >&2; read x || exit 3");
  EXPECT_EQ(outcome.output, "value\n");
  EXPECT_EQ(outcome.errors, "wrong\n");
  ASSERT_TRUE(outcome.status);
  EXPECT_EQ(*outcome.status, (ExitStatus{ExitStatus::Kind::kExited, 3})) << "there is nothing to read";
  EXPECT_FALSE(outcome.succeeded());
}

TEST(ToolRun, KeepsOnlySoMuch) {
  const ToolOutcome outcome = run("yes | head -c 1000000", Duration(60'000), 1000);
  EXPECT_EQ(outcome.output.size(), 1000U);
  EXPECT_TRUE(outcome.succeeded());
}

TEST(ToolRun, AsksToEndAtTheLimit) {
  const ToolOutcome outcome = run("trap 'echo bye; exit 0' TERM; while :; do sleep 0.01; done", Duration(50));
  EXPECT_TRUE(outcome.timed_out);
  EXPECT_FALSE(outcome.succeeded());
  ASSERT_TRUE(outcome.status);
}

TEST(ToolRun, EndsWhatTheToolLeftBehind) {
  const ToolOutcome outcome = run("sleep 1000 & echo $!");
  ASSERT_TRUE(outcome.succeeded());
  const pid_t left = std::stoi(outcome.output);
  char state = 'S';
  for (int tries = 0; tries < 5000 && state != 'Z' && state != ' '; ++tries) {
    std::ifstream stat("/proc/" + std::to_string(left) + "/stat");
    std::string text;
    std::getline(stat, text);
    state = text.empty() ? ' ' : text[text.rfind(')') + 2];
    ::usleep(1000);
  }
  EXPECT_TRUE(state == 'Z' || state == ' ') << "state " << state;
}

TEST(ToolRun, SaysWhyItCouldNotStart) {
  EventLoop loop;
  ToolOutcome result;
  ToolRun tool(loop, {{"/no/such/program"}, {}, Duration(1000)}, [&](ToolOutcome outcome) {
    result = std::move(outcome);
    loop.stop();
  });
  loop.run();
  EXPECT_EQ(result.error_number, ENOENT);
}

TEST(ToolRun, EndsTheToolWithItsObject) {
  EventLoop loop;
  {
    const ToolRun tool(loop, {{"/bin/sh", "-c", "exec sleep 1000"}, {}, Duration(60'000)},
                       [](const ToolOutcome&) { ADD_FAILURE() << "nobody waits for it"; });
  }
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "it is reaped";
  EXPECT_EQ(errno, ECHILD);
}

TEST(ToolRun, BearsThatSomebodyElseReapsIt) {
  EventLoop loop;
  bool done = false;
  ToolRun tool(loop, {{"/bin/sh", "-c", "echo said"}, {}, Duration(60'000)}, [&](const ToolOutcome& outcome) {
    done = true;
    EXPECT_FALSE(outcome.status);
    EXPECT_EQ(outcome.output, "said\n");
    loop.stop();
  });
  EXPECT_GT(::waitpid(-1, nullptr, 0), 0);
  loop.run();
  EXPECT_TRUE(done);
}

}  // namespace
}  // namespace lrun
