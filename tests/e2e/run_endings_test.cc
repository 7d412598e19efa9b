// How whole runs end, and all that a user sees of it: tests/golden/verdict/run-*.txt.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "support/golden.h"
#include "support/lrun_process.h"

namespace lrun::test {
namespace {

constexpr const char* kWorks = "echo armed; exec sleep 1000";
constexpr const char* kIgnoresSignals = "trap '' INT TERM; echo armed; while :; do sleep 1000; done";

/// 'gone N' waits until lrun has reaped rank N: before that, a process that has ended can still be signalled.
constexpr const char* kGone =
    "gone() { until [ -e pid.$1 ]; do sleep 0.01; done; "
    "while kill -0 $(cat pid.$1) 2> /dev/null; do sleep 0.01; done; }; "
    "echo $$ > new.$RANK; mv new.$RANK pid.$RANK; ";

bool all_armed(LrunProcess& lrun, int ranks) {
  for (int rank = 0; rank < ranks; ++rank) {
    if (!lrun.wait_for("[" + std::to_string(rank) + "] armed")) return false;
  }
  return true;
}

/// The order of two ranks' lines is theirs alone.
std::string sorted_output(std::string text) {
  const auto out = text.find("--- stdout\n") + std::string("--- stdout\n").size();
  std::vector<std::string> lines;
  std::size_t at = out;
  while (at < text.size()) {
    const auto end = text.find('\n', at) + 1;
    lines.push_back(text.substr(at, end - at));
    at = end;
  }
  std::sort(lines.begin(), lines.end());
  text.resize(out);
  for (const std::string& line : lines) text += line;
  return text;
}

class RunThatEnds : public ::testing::Test {
 protected:
  /// Runs `script` on so many ranks, calls `meanwhile` when all are armed, and compares what came of it.
  void expect(const std::string& name, std::vector<std::string> options, int ranks, const std::string& script,
              const std::function<void(LrunProcess&)>& meanwhile = {}) {
    options.insert(options.end(), {"--log-dir", "/dev/null", "-n", std::to_string(ranks), "sh", "-c", script});
    LrunProcess lrun(options, {.before_exec = [this] {
                       const rlimit none{0, 0};
                       ::setrlimit(RLIMIT_CORE, &none);
                       (void)!::chdir(folder_.path().c_str());
                     }});
    if (meanwhile) {
      ASSERT_TRUE(all_armed(lrun, ranks)) << lrun.err();
      meanwhile(lrun);
    }
    expect_golden("verdict/run-" + name + ".txt", sorted_output(transcript(lrun)));
  }

  /// For workers that wait for it.
  void make_file(const std::string& name) const { (void)folder_.script(name, ""); }

 private:
  TemporaryFolder folder_;
};

TEST_F(RunThatEnds, WithASuccess) { expect("success", {}, 3, "echo done"); }

TEST_F(RunThatEnds, WhenTheLastOfThreeFails) {
  expect("last-fails", {}, 3, std::string(kGone) + "[ $RANK = 2 ] || exit 0; gone 0; gone 1; exit 5");
}

TEST_F(RunThatEnds, WhenOneRankKillsAnother) {
  expect("rank-kills-rank", {}, 2,
         "[ $RANK = 1 ] && { echo $$ > pid.new; mv pid.new pid; exec sleep 1000; }; until [ -e pid ]; do sleep 0.01; "
         "done; kill -s KILL $(cat pid); exec sleep 1000");
}

TEST_F(RunThatEnds, WhenTheOthersIgnoreTerm) {
  expect("others-ignore-term", {"--grace", "200ms"}, 3,
         "[ $RANK = 1 ] && { until [ -e 0 -a -e 2 ]; do sleep 0.01; done; exit 6; }; trap '' TERM; : > $RANK; while :; "
         "do sleep 1000; done");
}

TEST_F(RunThatEnds, WithoutAGrace) {
  expect("no-grace", {"--grace", "0"}, 3,
         "trap '' TERM; : > ready.$RANK; [ $RANK = 1 ] || exec sleep 1000; "
         "until [ -e ready.0 ] && [ -e ready.2 ]; do sleep 0.01; done; exit 6");
}

TEST_F(RunThatEnds, WithAVictimAndItsCulprit) {
  expect("victim-first", {"--settle", "100s"}, 3,
         std::string(kGone) +
             "case $RANK in 2) echo '[Rank 2] Watchdog caught collective operation timeout' >&2; kill -s ABRT $$;; "
             "1) gone 2; exit 3;; 0) gone 1; exit 0;; esac");
}

TEST_F(RunThatEnds, WithManyVictims) {
  expect("many-victims", {"--settle", "100s"}, 4,
         std::string(kGone) +
             "[ $RANK = 3 ] && exit 9; gone $(((RANK + 3) % 4)); echo 'RuntimeError: Connection closed by peer' >&2; "
             "exit 1");
}

TEST_F(RunThatEnds, ByCtrlC) {
  expect("interrupted", {}, 2, kWorks, [](LrunProcess& lrun) { lrun.signal(SIGINT); });
}

TEST_F(RunThatEnds, ByTerm) {
  expect("terminated", {}, 2, kWorks, [](LrunProcess& lrun) { lrun.signal(SIGTERM); });
}

TEST_F(RunThatEnds, ByASecondCtrlC) {
  expect("interrupted-twice", {}, 2, kIgnoresSignals, [](LrunProcess& lrun) {
    lrun.signal(SIGINT);
    ASSERT_TRUE(lrun.wait_for("Ctrl-C again kills at once"));
    lrun.signal(SIGINT);
  });
}

TEST_F(RunThatEnds, ByTermAndTheEndOfTheGrace) {
  expect("terminated-deaf", {"--grace", "200ms"}, 2, kIgnoresSignals, [](LrunProcess& lrun) { lrun.signal(SIGTERM); });
}

TEST_F(RunThatEnds, WhenItsLauncherIsKilled) {
  expect("launcher-killed", {}, 2, kWorks, [](LrunProcess& lrun) { ::kill(lrun.launcher_pid(), SIGKILL); });
}

TEST_F(RunThatEnds, WhenItsGuardIsKilled) {
  expect("guard-killed", {}, 2, kWorks, [](LrunProcess& lrun) { lrun.signal(SIGKILL); });
}

/// Says a word to the run's control socket.
void tell(const LrunProcess& lrun, const std::string& word) {
  const Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = lrun.run_folder() / "control.sock";
  ASSERT_LT(path.size(), sizeof address.sun_path);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  ASSERT_TRUE(eventually(
      [&] { return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0; }));
  ASSERT_EQ(::write(socket.get(), (word + "\n").c_str(), word.size() + 1), static_cast<ssize_t>(word.size() + 1));
}

TEST_F(RunThatEnds, WhenAskedThroughItsControlSocket) {
  expect("asked-to-stop", {}, 2, kWorks, [](LrunProcess& lrun) { tell(lrun, "stop"); });
}

TEST_F(RunThatEnds, WhenNobodyReadsItsOutput) {
  expect("console-closed", {}, 2,
         "echo armed; until [ -e closed ]; do sleep 0.01; done; while :; do echo more; sleep "
         "0.01; done",
         [this](LrunProcess& lrun) {
           lrun.close_stdout();
           make_file("closed");
         });
}

}  // namespace
}  // namespace lrun::test
