// A run on hosts that the user names. A script takes ssh's part: all of them are this machine.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "support/lrun_process.h"
#include "support/process_memory.h"
#include "support/temporary_folder.h"
#include "support/words.h"

namespace lrun::test {
namespace {

constexpr const char* kFakeSsh = R"(#!/bin/sh
while [ $# -gt 2 ]; do shift; done
case $1 in
  refused) echo "ssh: connect to host refused port 22: Connection refused" >&2; exit 255 ;;
  denied) echo "bob@denied: Permission denied (publickey)." >&2; exit 255 ;;
  closed) echo "All use is logged" >&2; sleep 0.1; echo "This account is currently not available."; exit 1 ;;
  bare) exec sh -c "exec /nowhere/lrun" ;;
  full|lost|mute)  # answers that it can; when it is told to go it cannot, ends, or says no more
    name=$1
    set -- $(dd bs=1 count=5 2>/dev/null | od -An -tu1)
    dd bs=1 count=$(($2 + 256 * $3 + 65536 * $4)) of=/dev/null 2>/dev/null
    printf '\000lrun-node/1\nr\020\000\000\000'
    head -c 16 /dev/zero
    until [ "$letter" = g ]; do
      letter=$(dd bs=1 count=1 2>/dev/null)
      [ -n "$letter" ] || exit 1
      dd bs=1 count=4 of=/dev/null 2>/dev/null
    done
    [ $name != lost ] || exit 255
    [ $name != mute ] || exec cat >/dev/null
    printf 'f\007\000\000\000no room'
    exec cat >/dev/null ;;
esac
if [ $1 = alias ]; then  # ssh knows its address, and says nothing of it
  unset SSH_CONNECTION
  exec sh -c "$2"
fi
[ $1 != jumped ] || head_address=239.255.0.1  # of a group: the kernel itself connects to none
echo "Welcome to $1"
echo "have a nice day" >&2
unset CARRIED TMPDIR
[ -n "$LRUN_STATE" ] || export HOME="${0%/*}/home-$1"
export SSH_CONNECTION="${head_address-127.0.0.1} 40000 127.0.0.1 22" HOST_NAME=$1
[ $1 != seen ] || { tee "${0%/*}/seen" | sh -c "$2"; exit; }
sh -c "$2"
status=$?
case $1 in
  shared) exec sleep 1000 ;;  # serves other connections, too
esac
exit $status
)";

class Hosts : public testing::Test {
 protected:
  Hosts() {
    std::ofstream(fake_ssh()) << kFakeSsh;
    ::chmod(fake_ssh().c_str(), 0755);
  }

  [[nodiscard]] std::string fake_ssh() const { return (folder_.path() / "ssh").string(); }

  /// The bytes that the host 'seen' got.
  [[nodiscard]] std::string seen() const {
    std::ifstream file(folder_.path() / "seen", std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  [[nodiscard]] LrunProcess::Options options() const {
    return {
        .environment = {{"LRUN_SSH", fake_ssh()}, {"CARRIED", "from the head"}, {"TMPDIR", folder_.path().string()}}};
  }

  TemporaryFolder folder_;
};

TEST_F(Hosts, RunOneJobWithUnequalNumbersOfWorkers) {
  LrunProcess lrun(
      joined({"-H", "a:1,b:2"},
             shell("echo $RANK/$WORLD_SIZE local $LOCAL_RANK node $GROUP_RANK on $HOST_NAME: $CARRIED ${TMPDIR-none}")),
      options());
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  for (const char* const line :
       {"[0] 0/3 local 0 node 0 on a: from the head none\n", "[1] 1/3 local 0 node 1 on b: from the head none\n",
        "[2] 2/3 local 1 node 1 on b: from the head none\n"}) {
    EXPECT_EQ(count(lrun.out(), line), 1U) << line << lrun.out() << lrun.err();
  }
  EXPECT_FALSE(contains(lrun.out() + lrun.err(), "Welcome")) << "what a host says at a login is not the workers'";
  EXPECT_EQ(lrun.err(), "");
}

TEST_F(Hosts, LeaveARecordWhereTheRunWasTyped) {
  const std::string gate = (folder_.path() / "gate").string();
  LrunProcess::Options apart = options();
  apart.environment["LRUN_STATE"] = "";
  apart.environment["XDG_STATE_HOME"] = "";
  apart.environment["HOME"] = (folder_.path() / "home").string();
  const auto verb = [&](const Words& words, int code = 0) {
    LrunProcess asked(words, apart);
    EXPECT_EQ(asked.wait().code, code) << asked.err();
    return asked.out() + asked.err();
  };
  LrunProcess lrun(
      joined({"-H", "a:1,b:1"}, shell("echo ready; until [ -e " + gate + " ]; do sleep 0.1; done; exit 7")), apart);
  ASSERT_TRUE(lrun.read_until([&] { return count(lrun.out(), "ready") == 2; })) << lrun.err();
  std::string status;
  EXPECT_TRUE(eventually([&] { return contains(status = verb({"status"}), "  running: a, b\n"); })) << status;
  EXPECT_TRUE(contains(status, " (pid " + std::to_string(lrun.pid()) + "): running for ")) << status;
  std::ofstream(gate) << "open";
  EXPECT_EQ(lrun.wait().code, 7) << lrun.err();
  EXPECT_TRUE(contains(verb({"runs"}), "  worker failed  ")) << verb({"runs"});
  EXPECT_TRUE(contains(verb({"report"}), "exited with code 7\n")) << verb({"report"});
  EXPECT_TRUE(contains(verb({"explain"}), ": worker failed, exit code 7 after ")) << verb({"explain"});
  EXPECT_TRUE(contains(verb({"explain"}), "exited with code 7\n")) << verb({"explain"});
  EXPECT_TRUE(contains(verb({"again", "--dry-run"}), " -H a:1,b:1 ")) << verb({"again", "--dry-run"});
  EXPECT_TRUE(contains(verb({"logs"}, 125), " are on its hosts\n")) << verb({"logs"}, 125);
}

TEST_F(Hosts, TellWhereTheRunWasTypedWhatTheirRanksDo) {
  const std::string gate = (folder_.path() / "gate").string();
  LrunProcess::Options apart = options();
  apart.environment["LRUN_STATE"] = "";
  apart.environment["XDG_STATE_HOME"] = "";
  apart.environment["HOME"] = (folder_.path() / "home").string();
  const auto verb = [&](const Words& words) {
    LrunProcess asked(words, apart);
    EXPECT_EQ(asked.wait().code, 0) << asked.err();
    return asked.out() + asked.err();
  };
  LrunProcess lrun(joined({"-H", "a:1,b:1"}, shell("echo ready $RANK; until [ -e " + gate + " ]; do sleep 0.1; done")),
                   apart);
  ASSERT_TRUE(lrun.read_until([&] { return count(lrun.out(), "ready") == 2; })) << lrun.err();
  std::string said;
  const auto has_both = [&] { return contains(said, "ready 0\n") && contains(said, "ready 1\n"); };
  EXPECT_TRUE(eventually([&] { return said = verb({"status"}), has_both(); })) << said;
  EXPECT_TRUE(contains(said, " on a): running for ") && contains(said, " on b): running for ")) << said;
  EXPECT_TRUE(contains(said, "  MEMORY  ")) << said;
  said = verb({"stack", "--json", "--brief"});
  EXPECT_TRUE(contains(said, "\"host\": \"a\"") && contains(said, "\"host\": \"b\"")) << said;
  EXPECT_FALSE(contains(said, "not shown")) << said;
  std::ofstream(gate) << "open";
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
}

TEST_F(Hosts, OneOfThemKeepsItsPartOfTheRunThatWasTyped) {
  LrunProcess lrun({"-H", "a:1", "true"}, options());
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_EQ(lrun.run_folder().filename(), "a");
  EXPECT_TRUE(std::filesystem::exists(lrun.run_folder().parent_path() / "head_of_run" / "result.json"));
  LrunProcess refused({"-H", "a:1", "/nowhere/train"}, options());
  EXPECT_EQ(refused.wait().code, 127) << refused.err();
  LrunProcess runs({"runs"}, {.environment = {{"LRUN_STATE", refused.state().string()}}});
  EXPECT_EQ(runs.wait().code, 0);
  EXPECT_TRUE(contains(runs.out(), "  start failed  /nowhere/train\n")) << "it never began: " << runs.out();
  LrunProcess logs({"logs"}, {.environment = {{"LRUN_STATE", refused.state().string()}}});
  EXPECT_EQ(logs.wait().code, 125);
  EXPECT_TRUE(contains(logs.err(), " started no worker here\n")) << logs.err();
}

TEST_F(Hosts, TellAFailureOnceAndEndWithItsCode) {
  LrunProcess lrun(joined({"-H", "a:2,b:2", "--grace", "20s"},
                          shell("if [ $RANK = 3 ]; then echo boom >&2; exit 7; fi; exec sleep 1000")),
                   options());
  EXPECT_EQ(lrun.wait().code, 7) << lrun.err();
  EXPECT_EQ(count(lrun.err(), "lrun: error: rank 3 exited with code 7\n"), 1U) << lrun.err();
  EXPECT_TRUE(contains(lrun.err(), " on b); 3 other workers ")) << lrun.err();
  EXPECT_TRUE(contains(lrun.err(), "boom\n")) << lrun.err();
}

TEST_F(Hosts, ThatCannotBeUsedAreOneTableBeforeAnythingStarts) {
  const std::string started = (folder_.path() / "started").string();
  LrunProcess lrun({"-H", "a:1,refused:1,denied:1", "touch", started}, options());
  EXPECT_EQ(lrun.wait().code, 125);
  EXPECT_TRUE(contains(lrun.err(),
                       "lrun: error: 2 of 3 hosts cannot be used; nothing was started\n"
                       "  | refused  ssh: connect to host refused port 22: Connection refused\n"
                       "  | denied   bob@denied: Permission denied (publickey).\n"))
      << lrun.err();
  EXPECT_FALSE(std::filesystem::exists(started));
  LrunProcess closed({"-H", "a:1,closed:1", "true"}, options());
  EXPECT_EQ(closed.wait().code, 125);
  EXPECT_TRUE(contains(closed.err(), "  | closed  This account is currently not available.\n")) << closed.err();
  LrunProcess bare({"-H", "a:1,bare:1", "true"}, options());
  EXPECT_EQ(bare.wait().code, 125);
  EXPECT_TRUE(contains(bare.err(), "  | bare  no '")) << bare.err();
  EXPECT_TRUE(contains(bare.err(), "' on that host\n")) << bare.err();
}

TEST_F(Hosts, AreStoppedBySignalsWithTheirGrace) {
  LrunProcess lrun(
      joined({"-H", "a:1,b:1", "--grace", "30s"},
             shell("trap 'echo stopped $RANK; exit 0' TERM; echo ready $RANK; while :; do sleep 0.1; done")),
      options());
  ASSERT_TRUE(lrun.read_until([&] { return contains(lrun.out(), "ready 0") && contains(lrun.out(), "ready 1"); }))
      << lrun.err();
  lrun.signal(SIGTERM);
  const LrunEnd end = lrun.wait();
  EXPECT_EQ(end.signal_number, SIGTERM) << lrun.err();
  for (const char* const line : {"stopped 0", "stopped 1"}) EXPECT_TRUE(contains(lrun.out(), line)) << lrun.out();
}

TEST_F(Hosts, RunNothingOnceTheHeadWasKilled) {
  LrunProcess lrun(joined({"-H", "a:1,b:1,localhost:1"}, shell("trap '' TERM HUP; echo ready; sleep 1000; sleep 1000")),
                   options());
  ASSERT_TRUE(lrun.read_until([&] { return count(lrun.out(), "ready") == 3; })) << lrun.err();
  ::kill(lrun.pid(), SIGKILL);
  EXPECT_EQ(lrun.wait().signal_number, SIGKILL);
  EXPECT_TRUE(eventually([&] { return lrun.processes().empty(); })) << "something has survived";
}

TEST_F(Hosts, RunOnWhileTheHeadIsSuspendedWithCtrlZ) {
  const std::string gate = (folder_.path() / "gate").string();
  const auto alive = [&] { return count(seen(), std::string("a\0\0\0\0", 5)); };
  LrunProcess::Options job = options();
  job.before_exec = [] { ::setpgid(0, 0); };  // as a shell starts it: what nobody could continue does not stop
  LrunProcess lrun(
      joined({"-H", "seen:1,b:1"}, shell("echo ready; until [ -e " + gate + " ]; do sleep 0.1; done; echo on")), job);
  ASSERT_TRUE(lrun.read_until([&] { return count(lrun.out(), "ready") == 2; })) << lrun.err();
  lrun.signal(SIGTSTP);
  ASSERT_TRUE(eventually([&] { return process_state(lrun.pid()) == 'T'; }));
  EXPECT_TRUE(eventually([&] { return seen().ends_with(std::string("p\0\0\0\0", 5)); })) << "its silence is foretold";
  const std::size_t before = alive();
  EXPECT_GT(before, 0U);
  lrun.signal(SIGCONT);
  EXPECT_TRUE(eventually([&] { return alive() >= before + 2; })) << "at once, and every few seconds";
  std::ofstream(gate) << "open";
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_EQ(count(lrun.out(), "on\n"), 2U) << lrun.out();
}

TEST_F(Hosts, OneThatFailsBeforeTheRendezvousEndsAll) {
  LrunProcess lrun({"-H", "a:1,b:1", "--chdir", "/nowhere", "true"}, options());
  EXPECT_EQ(lrun.wait().code, 125);
  EXPECT_EQ(count(lrun.err(), "workers cannot start there"), 1U) << "once for both: " << lrun.err();
}

TEST_F(Hosts, OneThatCannotStartWhenToldToEndsAll) {
  const std::string started = (folder_.path() / "started").string();
  LrunProcess lrun({"-H", "a:1,full:1", "touch", started}, options());
  EXPECT_EQ(lrun.wait().code, 125);
  EXPECT_TRUE(contains(lrun.err(), "lrun: error: full: lrun cannot start there: no room\n")) << lrun.err();
  EXPECT_FALSE(std::filesystem::exists(started));
}

TEST_F(Hosts, OneThatIsLostBeforeTheRendezvousRefusesTheRun) {
  const std::string started = (folder_.path() / "started").string();
  LrunProcess lrun({"-H", "a:1,lost:1", "touch", started}, options());
  EXPECT_EQ(lrun.wait().code, 125) << "not that of a signal which nobody sent: " << lrun.err();
  EXPECT_TRUE(contains(lrun.err(), "lrun: error: the connection to lost was lost: ssh exited with code 255"))
      << lrun.err();
  EXPECT_FALSE(std::filesystem::exists(started));
}

TEST_F(Hosts, ThatSshReachesAnotherWayAreToldHowToSayWhereToMeet) {
  LrunProcess lrun({"-H", "localhost:1,jumped:1", "true"}, options());
  ASSERT_TRUE(lrun.read_until([&] { return contains(lrun.err(), "'--master-addr' says where the first host is"); }))
      << lrun.err();
  EXPECT_TRUE(contains(lrun.err(), "nobody serves the rendezvous at 239.255.0.1 port ")) << lrun.err();
  lrun.signal(SIGINT);
  EXPECT_EQ(lrun.wait().signal_number, SIGINT) << lrun.err();
}

TEST_F(Hosts, AFirstOneWithoutAnAddressIsNamedSoon) {
  LrunProcess lrun({"-H", "alias:1,b:1", "true"}, options());
  EXPECT_EQ(lrun.wait().code, 125) << lrun.err();
  EXPECT_TRUE(contains(lrun.err(), "lrun: error: b: the nodes did not meet: there is no host 'alias' (asked for 3s)\n"))
      << lrun.err();
  EXPECT_EQ(count(lrun.err(), "lrun: hint: "), 1U) << lrun.err();
  EXPECT_TRUE(contains(lrun.err(), "'--master-addr' says where the first host is reached\n")) << lrun.err();
  LrunProcess report({"report"}, {.environment = {{"LRUN_STATE", lrun.state().string()}}});
  EXPECT_EQ(report.wait().code, 0) << report.err();
  EXPECT_TRUE(contains(report.out(), "lrun: error: b: the nodes did not meet: there is no host 'alias'"))
      << report.out();
}

TEST_F(Hosts, ThatNeverTellTheirEndAreNotWaitedForOnceTheJobIsOver) {
  LrunProcess lrun({"-H", "a:1,mute:1", "--nnodes", "1:2", "--grace", "0s", "true"}, options());
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_TRUE(contains(lrun.err(), "no outcome was received from mute\n")) << lrun.err();
}

TEST_F(Hosts, AreNotWaitedForByASshThatStaysAfterTheirEnd) {
  LrunProcess lrun(joined({"-H", "shared:1,b:1"}, shell("echo $RANK; exit 3")), options());
  EXPECT_EQ(lrun.wait().code, 3) << lrun.err();
  EXPECT_TRUE(lrun.processes().empty()) << "the ssh is ours";
}

TEST_F(Hosts, KeepLittleOfWhatASlowReaderHasNotTaken) {
  constexpr std::size_t kLines = std::size_t{1} << 20U;
  const std::string line(63, 'x');
  const std::size_t expected = kLines * ("[0] " + line + "\n").size();  // 68 MiB
  const std::string gate = (folder_.path() / "gate").string();
  ASSERT_EQ(::mkfifo(gate.c_str(), 0600), 0);
  const Fd opener(::open(gate.c_str(), O_RDWR | O_CLOEXEC));
  LrunProcess lrun(joined({"-H", "a:1,b:1"}, shell("[ $RANK = 1 ] || yes " + line + " | head -n " +
                                                   std::to_string(kLines) + "; read x <" + gate)),
                   options());
  std::size_t taken = 0;
  ASSERT_TRUE(lrun.read_until([&] {
    if (lrun.out().size() - taken > 65536) {
      taken = lrun.out().size();
      std::this_thread::sleep_for(2ms);  // the reader is slow: all before it are full
    }
    return lrun.out().size() >= expected;
  })) << lrun.err();
  long peak = 0;
  for (const pid_t pid : lrun.processes()) peak = std::max(peak, peak_bytes(pid));
  EXPECT_GT(peak, 0);
  EXPECT_TRUE(!kMemoryTells || peak < 32 << 20) << peak << " bytes";
  EXPECT_EQ(::write(opener.get(), "\n\n", 2), 2);
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_EQ(lrun.out().size(), expected);
}

TEST_F(Hosts, SecretsAreOnNoCommandLine) {
  LrunProcess::Options with_secret = options();
  with_secret.environment["LRUN_JOB_SECRET"] = "hidden-secret";
  LrunProcess lrun(joined({"-H", "a:1,b:1"}, shell("cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c hidden-secre[t]; "
                                                   "echo ${LRUN_JOB_SECRET-no secret}")),
                   with_secret);
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_EQ(count(lrun.out(), "] 0\n"), 2U) << lrun.out();
  EXPECT_EQ(count(lrun.out(), "no secret"), 2U) << lrun.out();
}

TEST_F(Hosts, AreReadFromAFile) {
  const std::string file = (folder_.path() / "hosts").string();
  std::ofstream(file) << "# two\na slots=1\nb slots=3\n";
  LrunProcess lrun(joined({"--hostfile", file, "--exclude", "b:2"}, shell("echo $RANK/$WORLD_SIZE on $HOST_NAME")),
                   options());
  lrun.wait();
  EXPECT_TRUE(contains(lrun.err(), "GPU")) << "devices by number are GPUs: " << lrun.err();
  LrunProcess counted(joined({"--hostfile", file}, shell("echo $RANK/$WORLD_SIZE on $HOST_NAME")), options());
  EXPECT_EQ(counted.wait().code, 0) << counted.err();
  EXPECT_TRUE(contains(counted.out(), "3/4 on b")) << counted.out();
  LrunProcess missing({"--hostfile", "/nowhere", "true"}, options());
  EXPECT_EQ(missing.wait().code, 125);
  EXPECT_TRUE(contains(missing.err(), "'--hostfile /nowhere' cannot be read: No such file or directory"))
      << missing.err();
  LrunProcess misspelt({"--hostfile", file + "s", "true"}, options());
  EXPECT_EQ(misspelt.wait().code, 125);
  EXPECT_TRUE(contains(misspelt.err(), "did you mean '--hostfile " + file + "'?")) << misspelt.err();
}

TEST_F(Hosts, AreReadFromAPipe) {
  const std::string pipe = (folder_.path() / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  LrunProcess lrun(joined({"--hostfile", pipe}, shell("echo $RANK/$WORLD_SIZE")), options());
  std::ofstream(pipe) << "localhost slots=2\n";  // opens when lrun has opened it
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_TRUE(contains(lrun.out(), "[1] 1/2\n")) << lrun.out();
}

TEST_F(Hosts, ThisMachineAloneIsAnOrdinaryRun) {
  LrunProcess lrun(joined({"-H", "localhost:2", "--ssh", "/nowhere/ssh"}, shell("echo $RANK/$WORLD_SIZE")), options());
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_TRUE(contains(lrun.out(), "[1] 1/2\n")) << lrun.out();
}

TEST_F(Hosts, ThisMachineTakesPartWithoutSsh) {
  LrunProcess lrun(joined({"-H", "localhost:1,a:1"}, shell("echo $RANK/$WORLD_SIZE on ${HOST_NAME-here}")), options());
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_TRUE(contains(lrun.out(), "[0] 0/2 on here\n")) << lrun.out();
  EXPECT_TRUE(contains(lrun.out(), "[1] 1/2 on a\n")) << lrun.out();
}

TEST_F(Hosts, RunAProgramWrittenForTheLauncherOfDeepSpeed) {
  const std::string program = (folder_.path() / "program").string();
  std::ofstream(program)
      << "#!/bin/sh\necho \"$HOST_NAME $* node $CROSS_RANK/$CROSS_SIZE of $LOCAL_SIZE: $FROM_FILE\"\n";
  ::chmod(program.c_str(), 0755);
  std::ofstream(folder_.path() / ".deepspeed_env") << "FROM_FILE = two words\n";
  std::ofstream(folder_.path() / "hostfile") << "a slots=8\nb slots=8\nc slots=8\n";
  LrunProcess::Options started = options();
  started.environment["HOME"] = folder_.path().string();
  LrunProcess lrun({"--strategy", "deepspeed", "--hostfile", (folder_.path() / "hostfile").string(), "--num_nodes", "2",
                    "--num_gpus", "2", "--accelerator", "cpu", program, "--deepspeed"},
                   started);
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  for (const char* const line : {"[0] a --local_rank=0 --deepspeed node 0/2 of 2: two words\n",
                                 "[1] a --local_rank=1 --deepspeed node 0/2 of 2: two words\n",
                                 "[2] b --local_rank=0 --deepspeed node 1/2 of 2: two words\n",
                                 "[3] b --local_rank=1 --deepspeed node 1/2 of 2: two words\n"}) {
    EXPECT_EQ(count(lrun.out(), line), 1U) << line << lrun.out() << lrun.err();
  }
}

TEST_F(Hosts, AreNotAFile) {
  const std::string file = (folder_.path() / "nodes.txt").string();
  std::ofstream(file) << "a\nb\n";
  LrunProcess::Options in_folder = options();
  in_folder.before_exec = [path = folder_.path()] { std::filesystem::current_path(path); };
  LrunProcess lrun({"-H", "nodes.txt", "true"}, in_folder);
  EXPECT_EQ(lrun.wait().code, 125);
  EXPECT_EQ(lrun.err(),
            "lrun: error: '-H nodes.txt' names a file, and '-H' takes hosts\n"
            "lrun: hint: write '--hostfile nodes.txt'\n");
}

TEST_F(Hosts, AreShownInThePlan) {
  LrunProcess lrun({"--dry-run", "-H", "a:2,b:1", "true"}, options());
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_EQ(count(lrun.out(), "-H a:2,b:1"), 2U) << "hosts, and their devices: " << lrun.out();
  EXPECT_TRUE(contains(lrun.out(), "3 on all nodes together")) << lrun.out();
  EXPECT_TRUE(contains(lrun.out(), "\nmaster        a, address and port chosen at start\n")) << lrun.out();
  EXPECT_TRUE(contains(lrun.out(), "\n  b  RANK=2 NODE_RANK=1 LOCAL_RANK=0 ")) << lrun.out();
  EXPECT_EQ(lrun.err(), "lrun: note: planned with this host's GPUs and CPUs; each node uses its own\n");
}

TEST_F(Hosts, ContradictAJobOfSlurm) {
  LrunProcess::Options in_job = options();
  in_job.environment["SLURM_JOB_ID"] = "12";
  LrunProcess lrun({"-H", "a:2,b:1", "true"}, in_job);
  EXPECT_EQ(lrun.wait().code, 125);
  EXPECT_TRUE(contains(lrun.err(), "'-H a:2,b:1' and Slurm job 12 (SLURM_JOB_ID) both say which nodes to use"))
      << lrun.err();
}

}  // namespace
}  // namespace lrun::test
