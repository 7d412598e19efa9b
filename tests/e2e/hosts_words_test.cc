// What a run on hosts that the user names says, and of which lines it says no. A script takes ssh's part: all hosts are
// this machine.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/beside.h"
#include "support/lrun_process.h"
#include "support/mentions.h"
#include "support/temporary_folder.h"
#include "support/words.h"

namespace lrun::test {
namespace {

/// Of its process there is a file 'pid_HOST'.
constexpr const char* kFakeSsh = R"sh(#!/bin/sh
while [ $# -gt 2 ]; do shift; done
folder=${0%/*}
echo $$ >"$folder/pid_$1.new"
mv "$folder/pid_$1.new" "$folder/pid_$1"
export SSH_CONNECTION="127.0.0.1 40000 127.0.0.1 22" HOST_NAME=$1
one_frame() {  # copies it, and its kind into $kind
  dd bs=1 count=5 of="$folder/header" 2>/dev/null
  cat "$folder/header"
  kind=$(head -c 1 "$folder/header")
  set -- $(od -An -tu1 "$folder/header")
  [ $# -eq 5 ] || exit 1
  dd bs=1 count=$(($2 + 256 * $3 + 65536 * $4)) 2>/dev/null
}
case $1 in
  deaf) exec sleep 1000 ;;  # ssh connects for ever
  away)  # answers that it can, and does nothing before a signal
    one_frame >/dev/null
    printf '\000lrun-node/1\nr\020\000\000\000'
    head -c 16 /dev/zero
    until [ "$kind" = s ]; do one_frame >/dev/null; done
    exit 255 ;;
  slow)  # hears what it is told while it runs once the file 'gate' is there
    {
      until [ "$kind" = g ]; do one_frame; done
      until [ -e "$folder/gate" ]; do sleep 0.05; done
      exec cat
    } | sh -c "$2" ;;
  late)  # answers that it can; when it is told to go it waits for the end of host a, and is lost
    one_frame >/dev/null
    printf '\000lrun-node/1\nr\020\000\000\000'
    head -c 16 /dev/zero
    until [ "$kind" = g ]; do one_frame >/dev/null; done
    until [ -e "$folder/pid_a" ]; do sleep 0.05; done
    while kill -0 "$(cat "$folder/pid_a")" 2>/dev/null; do sleep 0.05; done
    exit 255 ;;
  bare)  # is told to go once the worker of host a runs, and has no program then; makes the file 'gate' at its end
    {
      until [ "$kind" = g ]; do
        one_frame >"$folder/frame"
        [ "$kind" != g ] || until [ -e "$folder/up" ]; do sleep 0.05; done
        [ "$kind" != g ] || rm "$folder/program"
        cat "$folder/frame"
      done
      exec cat
    } | { sh -c "$2"; echo open >"$folder/gate"; } ;;
  *) sh -c "$2" ;;
esac
)sh";

class HostsWords : public testing::Test {
 protected:
  HostsWords() {
    std::ofstream(path("ssh")) << kFakeSsh;
    ::chmod(path("ssh").c_str(), 0755);
  }

  [[nodiscard]] std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  [[nodiscard]] LrunProcess::Options options() const { return {.environment = {{"LRUN_SSH", path("ssh")}}}; }

  TemporaryFolder folder_;
};

TEST_F(HostsWords, AreWaitedForInTheSightOfAll) {
  for (const std::string host : {"deaf", "away"}) {
    LrunProcess lrun({"-H", "a:1," + host + ":1", "--rdzv-id", "resnet", "true"}, options());
    const std::string waits = host == "deaf" ? "connecting to 1 of 2 hosts: deaf" : "starting on 2 hosts: a, away";
    const LrunProcess::Options same{.environment = {{"LRUN_STATE", lrun.state().string()}}};
    const auto verb = [&](const Words& words) {
      LrunProcess asked(words, same);
      EXPECT_EQ(asked.wait().code, 0) << asked.err();
      return asked.out() + asked.err();
    };
    ASSERT_TRUE(eventually([&] { return contains(verb({"status"}), waits); })) << verb({"status"});
    EXPECT_TRUE(contains(verb({"runs"}), "  " + waits + "  true\n")) << verb({"runs"});
    for (const char* const word : {"status", "report", "explain", "stack", "logs"}) {
      const std::string said = verb({word, "resnet"});
      EXPECT_TRUE(contains(said, ": waiting for ") && contains(said, " for its hosts: true\n  " + waits + "\n"))
          << said;
    }
    lrun.signal(SIGINT);
    EXPECT_EQ(lrun.wait().signal_number, SIGINT) << lrun.err();
    EXPECT_EQ(count(lrun.err(), "received SIGINT"), 1U) << lrun.err();
    EXPECT_TRUE(contains(lrun.err(), "lrun: note: received SIGINT while " + waits + "\n")) << lrun.err();
    EXPECT_TRUE(contains(verb({"runs"}), "interrupted: SIGINT")) << verb({"runs"});
    EXPECT_TRUE(contains(verb({"report"}), "\n\nlrun: note: received SIGINT while " + waits)) << verb({"report"});
  }
}

TEST_F(HostsWords, ThatFailAtOnceAreKept) {
  LrunProcess lrun({"-H", "a:1,b:1", "--ssh", "false", "true"}, options());
  EXPECT_EQ(lrun.wait().code, 125);
  LrunProcess report({"report"}, {.environment = {{"LRUN_STATE", lrun.state().string()}}});
  EXPECT_EQ(report.wait().code, 0) << report.err();
  EXPECT_TRUE(lrun.err().starts_with("lrun: error: ")) << lrun.err();
  EXPECT_TRUE(contains(report.out(), lrun.err())) << report.out() << lrun.err();
}

TEST_F(HostsWords, AreNamedOnceForEachWorkerInTheFileOfPbs) {
  const std::string file = path("nodes");
  std::ofstream(file) << "a\na\na\nb\n";
  LrunProcess lrun(joined({"--hostfile", file}, shell("echo $RANK/$WORLD_SIZE on $HOST_NAME")), options());
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_TRUE(contains(lrun.out(), "[2] 2/4 on a\n")) << lrun.out() << lrun.err();
  EXPECT_TRUE(contains(lrun.out(), "[3] 3/4 on b\n")) << lrun.out() << lrun.err();
}

TEST_F(HostsWords, HaveNoCountThatMayBeOfEachOrOfAll) {
  const std::string started = path("started");
  LrunProcess lrun({"-np", "2", "-H", "a:2,b:2", "touch", started}, options());
  EXPECT_EQ(lrun.wait().code, 125);
  EXPECT_THAT(lrun.err(),
              mentions({"lrun: error: '-np 2'", "'-H a:2,b:2'", "lrun: hint: ", "'--devices 2'", "'-H a:2'"}));
  EXPECT_FALSE(std::filesystem::exists(started));
}

/// The words are those of the first host, which hears of the signal from another one before it gets it itself.
TEST_F(HostsWords, TellASignalOfTheHeadInTheSameWordsWhoeverHearsOfItFirst) {
  LrunProcess lrun(joined({"-H", "slow:1,b:1", "--grace", "30s"}, shell("echo ready; exec sleep 1000")), options());
  ASSERT_TRUE(lrun.read_until([&] { return count(lrun.out(), "ready") == 2; })) << lrun.err();
  lrun.signal(SIGINT);
  EXPECT_TRUE(lrun.read_until([&] { return contains(lrun.err(), "ended when asked to"); })) << lrun.err();
  std::ofstream(path("gate")) << "open";
  EXPECT_EQ(lrun.wait().signal_number, SIGINT) << lrun.err();
  EXPECT_TRUE(contains(lrun.err(), "lrun: note: received SIGINT; stopping 2 workers on 2 nodes (up to 30s)"))
      << lrun.err();
  EXPECT_EQ(count(lrun.err(), "received SIGINT"), 1U) << lrun.err();
}

TEST_F(HostsWords, NameWhoseLauncherGotASignal) {
  LrunProcess lrun(joined({"-H", "a:1,b:1"}, shell("[ $RANK = 0 ] || kill -TERM $PPID; exec sleep 1000")), options());
  EXPECT_NE(lrun.wait().code, 0);
  EXPECT_TRUE(contains(lrun.err(), "lrun: note: node b: received SIGTERM; stopping ")) << lrun.err();
}

TEST_F(HostsWords, OneWithoutTheProgramIsNamed) {
  LrunProcess lrun({"-H", "a:1,b:1", "/nowhere/program"}, options());
  EXPECT_EQ(lrun.wait().code, 127) << lrun.err();
  const std::string what = ": cannot run '/nowhere/program': No such file or directory\n";
  EXPECT_EQ(count(lrun.err(), what), 1U) << "once for both: " << lrun.err();
  EXPECT_TRUE(contains(lrun.err(), "error: a" + what) || contains(lrun.err(), "error: b" + what)) << lrun.err();
  EXPECT_TRUE(contains(lrun.err(), ": there is no folder '/nowhere'\n")) << lrun.err();
}

TEST_F(HostsWords, AStartThatFailedIsExplainedWithItsHint) {
  LrunProcess lrun({"-H", "a:1", "/nowhere/program"}, options());
  EXPECT_EQ(lrun.wait().code, 127) << lrun.err();
  Beside explain(lrun, {"explain", "--json"});
  EXPECT_EQ(explain.wait().code, 0) << explain.err();
  EXPECT_TRUE(contains(explain.out(), "\"hint\":\"there is no folder '/nowhere'\"")) << explain.out();
  EXPECT_TRUE(contains(explain.out(), "\"next\":\"lrun report ")) << "it would fail alike: " << explain.out();
}

TEST_F(HostsWords, OneWithoutTheProgramIsNoLossToAJobThatSucceedsWithoutIt) {
  const std::string program = folder_.script("program", "#!/bin/sh\n{ : >" + path("up") + "; until [ -e " +
                                                            path("gate") + " ]; do sleep 0.05; done; exit; }\n");
  LrunProcess lrun({"-H", "a:1,bare:1", "--nnodes", "1:2", program}, options());
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_TRUE(contains(lrun.err(), "cannot run '" + program + "': No such file or directory")) << lrun.err();
}

TEST_F(HostsWords, WhoseDevicesAreSelectedAndNotThereAreNamedByTheSelection) {
  LrunProcess lrun({"-H", "a:2,b:2", "--include", "a:7", "--accelerator", "cpu", "true"}, options());
  EXPECT_EQ(lrun.wait().code, 125);
  EXPECT_TRUE(contains(lrun.err(), "'--include a:7': host 'a' has 2 devices")) << lrun.err();
  LrunProcess there({"-H", "a:2,b:2", "--include", "a:1", "--accelerator", "cpu", "true"}, options());
  EXPECT_EQ(there.wait().code, 125);
  EXPECT_EQ(there.err(),
            "lrun: error: '--include a:1' names GPUs, and '--accelerator cpu' excludes them\n"
            "lrun: hint: use '-H a:2' for two CPU ranks, or '--accelerator gpu'\n");
}

TEST_F(HostsWords, TellACauseOnceWhereverItIs) {
  for (const char* const rank : {"0", "1"}) {
    const Words program = shell(std::string("[ $RANK = ") + rank + " ] && { echo boom >&2; exit 7; }; exec sleep 1000");
    LrunProcess lrun(joined({"-H", "a:1,b:1"}, program), options());
    EXPECT_EQ(lrun.wait().code, 7) << lrun.err();
    EXPECT_EQ(count(lrun.err(), std::string("rank ") + rank + " exited with code 7"), 1U) << lrun.err();
    EXPECT_EQ(count(lrun.err(), "boom"), 1U) << "it is on the screen: " << lrun.err();
    EXPECT_EQ(count(lrun.err(), "\n"), 4U) << lrun.err();
  }
}

TEST_F(HostsWords, CannotBeReachedByAProgramThatIsMissing) {
  LrunProcess lrun({"-H", "a:1,b:1", "--ssh", "/nowhere/ssh", "true"}, options());
  EXPECT_EQ(lrun.wait().code, 125);
  EXPECT_TRUE(contains(lrun.err(), "  | a  cannot execute '/nowhere/ssh': No such file or directory\n")) << lrun.err();
  EXPECT_TRUE(contains(lrun.err(), "install it here, or name another command with '--ssh'\n")) << lrun.err();
}

TEST_F(HostsWords, OneThatIsLostWhileOthersRunIsWarnedOfBeforeTheVerdict) {
  const std::string pid_file = path("pid_b");
  LrunProcess lrun(joined({"-H", "a:1,b:1", "--grace", "30s"},
                          shell("trap 'until [ -e " + path("gate") +
                                " ]; do sleep 0.05; done; exit 0' TERM; [ $RANK = 0 ] || kill -9 $(cat " + pid_file +
                                "); while :; do sleep 0.05; done")),
                   options());
  const std::string warning = "lrun: warning: the connection to b was lost: ";
  EXPECT_TRUE(lrun.read_until([&] { return contains(lrun.err(), warning); })) << lrun.err();
  std::ofstream(path("gate")) << "open";
  EXPECT_NE(lrun.wait().code, 0);
  EXPECT_TRUE(contains(lrun.err(), "lrun: error: ")) << lrun.err();
  EXPECT_LT(lrun.err().find(warning), lrun.err().find("lrun: error: ")) << lrun.err();
}

TEST_F(HostsWords, OneThatIsLostWhenTheJobIsOverIsNotTold) {
  LrunProcess lrun({"-H", "a:1,late:1", "--nnodes", "1:2", "true"}, options());
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_FALSE(contains(lrun.err(), "late")) << lrun.err();
}

}  // namespace
}  // namespace lrun::test
