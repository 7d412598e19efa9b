// Several launchers of one job on one machine: they meet, run together, and end together.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "support/launchers_of_a_job.h"
#include "support/with_more_time.h"

namespace lrun::test {
namespace {

/// As on a machine that has no room for more processes: what lrun itself needs, fork makes.
void forbid_to_start_workers() {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_clone3, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_clone, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_VFORK, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program{static_cast<unsigned short>(std::size(rules)), rules};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

TEST(SeveralNodes, RunOneJob) {
  Job job({"--num_nodes", "3"});
  const Words show = shell(
      "echo $RANK/$WORLD_SIZE local $LOCAL_RANK/$LOCAL_WORLD_SIZE node $GROUP_RANK/$GROUP_WORLD_SIZE; "
      "echo master $MASTER_ADDR:$MASTER_PORT");
  LrunProcess& last = job.start({"--node-rank", "2", "-n", "1"}, show);
  LrunProcess& middle = job.start({"--node-rank", "1", "-n", "3"}, show);
  LrunProcess& first = job.start({"--node-rank", "0", "-n", "2"}, show);
  for (LrunProcess* node : {&first, &middle, &last}) EXPECT_EQ(node->wait().code, 0) << node->err();
  for (const char* line : {"0/6 local 0/2 node 0/3", "1/6 local 1/2 node 0/3"})
    EXPECT_TRUE(contains(first.out(), line));
  for (const char* line : {"2/6 local 0/3 node 1/3", "4/6 local 2/3 node 1/3"})
    EXPECT_TRUE(contains(middle.out(), line));
  EXPECT_TRUE(contains(last.out(), "5/6 local 0/1 node 2/3")) << last.out();
  const std::string master = first.out().substr(first.out().find("master "), 25);
  EXPECT_TRUE(contains(last.out(), master.substr(0, master.find('\n')))) << last.out();
}

TEST(SeveralNodes, EndWithTheCodeOfTheCulpritEverywhere) {
  for (const char* const backend : {"static", "c10d"}) {
    Job job({"--num_nodes", "2", "-n", "2", "--rdzv-backend", backend});
    const Words program = shell("if [ $RANK = 3 ]; then echo boom >&2; exit 7; fi; exec sleep 1000");
    LrunProcess& first = job.start({"--node-rank", "0"}, program);
    LrunProcess& second = job.start({"--node-rank", "1"}, program);
    for (LrunProcess* node : {&first, &second}) {
      EXPECT_EQ(node->wait().code, 7) << node->err();
      EXPECT_TRUE(contains(node->err(), "lrun: error: rank 3 exited with code 7\n")) << node->err();
      EXPECT_TRUE(contains(node->err(), "(local rank 1, pid ")) << node->err();
    }
    EXPECT_TRUE(contains(first.err(), "  | boom")) << "the last words travel, too: " << first.err();
  }
}

/// Whether the workers of a node are gone and its launcher is not.
bool only_waits(LrunProcess& node) {
  return node.read_until([&] { return contains(node.out(), "done") && node.workers().empty(); }) &&
         node.is_process(node.launcher_pid());
}

TEST(SeveralNodes, WaitForEachOtherAtTheEnd) {
  for (const int code : {0, 5}) {
    TemporaryFolder folder;
    const std::string end = (folder.path() / "end").string();
    const Words program = shell("echo done; [ $RANK = 0 ] || exit 0; while [ ! -e " + end +
                                " ]; do sleep 0.1; done; exit " + std::to_string(code));
    Job job({"--num_nodes", "2"});
    LrunProcess& first = job.start({"--node-rank", "0"}, program);
    LrunProcess& quick = job.start({"--node-rank", "1"}, program);
    EXPECT_TRUE(only_waits(quick)) << quick.err();
    std::ofstream(end) << "now\n";
    EXPECT_EQ(first.wait().code, code) << first.err();
    EXPECT_EQ(quick.wait().code, code) << "its own worker had succeeded: " << quick.err();
  }
}

TEST(SeveralNodes, StartAgainTogetherFromOneBudget) {
  TemporaryFolder folder;
  const std::string flag = (folder.path() / "failed").string();
  const Words program = shell("echo attempt $TORCHELASTIC_RESTART_COUNT of rank $RANK; [ -e " + flag +
                              " ] && exit 0; [ $RANK = 1 ] && touch " + flag + " && exit 3; exec sleep 1000");
  for (const char* const backend : {"static", "c10d"}) {
    std::filesystem::remove(flag);
    Job job({"--num_nodes", "2", "--max-restarts", "1", "--rdzv-backend", backend});
    LrunProcess& first = job.start({"--node-rank", "0"}, program);
    LrunProcess& second = job.start({"--node-rank", "1"}, program);
    EXPECT_EQ(first.wait().code, 0) << first.err();
    EXPECT_EQ(second.wait().code, 0) << second.err();
    EXPECT_TRUE(contains(first.out(), "attempt 1 of rank 0")) << first.out();
    EXPECT_TRUE(contains(second.out(), "attempt 1 of rank 1")) << second.out();
    EXPECT_TRUE(contains(first.err(), "restart 1 of 1")) << first.err();
    EXPECT_TRUE(contains(second.err(), "restart 1 of 1")) << second.err();
  }
}

TEST(SeveralNodes, UseTheirRestartsUpTogether) {
  Job job({"--num_nodes", "2", "--max-restarts", "1"});
  const Words program = shell("[ $RANK = 1 ] && exit 3; exec sleep 1000");
  LrunProcess& first = job.start({"--node-rank", "0"}, program);
  LrunProcess& second = job.start({"--node-rank", "1"}, program);
  for (LrunProcess* node : {&first, &second}) {
    EXPECT_EQ(node->wait().code, 3) << node->err();
    EXPECT_TRUE(contains(node->err(), "restarted once, as often as allowed")) << node->err();
  }
}

TEST(SeveralNodes, CountRestartsSinceTheNewestCheckpointOfAny) {
  const TemporaryFolder folder;
  // Each node looks at a path of its own: rank 0 saves in two attempts, and rank 1 fails.
  const Words program =
      shell("n=$TORCHELASTIC_RESTART_COUNT; if [ $RANK = 0 ]; then [ $n -lt 2 ] && echo $n > " +
            (folder / "0").string() + " && touch -d @$((n + 1)) " + (folder / "0").string() + "; echo saved > " +
            (folder / "saved_").string() + "$n; exec sleep 1000; fi; until [ -e " + (folder / "saved_").string() +
            "$n ]; do sleep 0.01; done; exit $((n + 3))");
  Job job({"--num_nodes", "2", "--max-restarts", "1", "--restart-backoff", "0"});
  LrunProcess& first = job.start({"--node-rank", "0", "--checkpoint-path", folder / "0"}, program);
  LrunProcess& second = job.start({"--node-rank", "1", "--checkpoint-path", folder / "1"}, program);
  for (LrunProcess* node : {&first, &second}) {
    EXPECT_EQ(node->wait().code, 5) << node->err();
    EXPECT_TRUE(contains(node->err(), "restart 2 (1 of 1 since the newest checkpoint)")) << node->err();
    EXPECT_TRUE(contains(node->err(), "restarted 2 times; not again")) << node->err();
  }
}

TEST(SeveralNodes, StopWhenTheLeaderIsKilledAndTooFewAreLeft) {
  Job job({"--num_nodes", "2", "--rdzv-conf", "join_timeout=2"});
  const Words program = shell("echo ready; exec sleep 1000");
  LrunProcess& first = job.start({"--node-rank", "0"}, program);
  LrunProcess& second = job.start({"--node-rank", "1"}, program);
  ASSERT_TRUE(first.wait_for("ready") && second.wait_for("ready")) << first.err() << second.err();
  kill_whole(first);
  EXPECT_EQ(second.wait().code, 125) << second.err();
  EXPECT_TRUE(
      contains(second.err(), " is lost: its launcher ended: the connection was closed; not enough nodes in 2s: "))
      << second.err();
  EXPECT_TRUE(eventually([&] { return first.processes().empty(); })) << "nothing survives there either";
}

/// What mpirun tells one of two launchers, which it ends together and does not start again.
LrunProcess::Options of_two_tasks(int rank, int port) {
  return {.environment = {{"PMI_SIZE", "2"},
                          {"PMI_RANK", std::to_string(rank)},
                          {"MPI_LOCALNRANKS", "1"},
                          {"MASTER_ADDR", "127.0.0.1"},
                          {"MASTER_PORT", std::to_string(port)}}};
}

TEST(SeveralNodes, StopTogetherWhenOneIsAskedToAndNoneCanComeBack) {
  for (const int asked : {0, 1}) {
    const int port = free_port();
    const Words program = joined({"--devices", "1"}, shell("echo ready; exec sleep 1000"));
    LrunProcess first(program, of_two_tasks(0, port));
    LrunProcess second(program, of_two_tasks(1, port));
    ASSERT_TRUE(first.wait_for("ready") && second.wait_for("ready")) << first.err() << second.err();
    LrunProcess& here = asked == 0 ? first : second;
    LrunProcess& there = asked == 0 ? second : first;
    here.signal(SIGTERM);
    EXPECT_EQ(here.wait().signal_number, SIGTERM) << here.err();
    EXPECT_EQ(there.wait().code, 128 + SIGTERM) << there.err();
    EXPECT_TRUE(contains(first.err(), "received SIGTERM")) << first.err();
    EXPECT_EQ(second.err(), "") << "the first tells it for both";
  }
}

TEST(SeveralNodes, OfOneMpirunTellOnceWhatHappensToTheJob) {
  const int port = free_port();
  const Words program =
      joined({"--devices", "2"}, shell("if [ $RANK = 3 ]; then echo boom >&2; exit 7; fi; exec sleep 1000"));
  LrunProcess first(program, of_two_tasks(0, port));
  LrunProcess second(program, of_two_tasks(1, port));
  for (LrunProcess* node : {&first, &second}) EXPECT_EQ(node->wait().code, 7) << node->err();
  EXPECT_EQ(count(first.err(), "lrun: error: rank 3 exited with code 7\n"), 1U) << first.err();
  EXPECT_TRUE(contains(first.err(), "lrun: note: stopping 3 other workers on 2 nodes (up to 30s)\n")) << first.err();
  EXPECT_TRUE(contains(first.err(), "  | boom")) << "mpirun may keep the output of tasks apart: " << first.err();
  EXPECT_EQ(second.err(), "[3] boom\n") << "only what its workers print";
}

TEST(SeveralNodes, OfOneMpirunTellTheCauseAgainBelowMuchThatAnyOfThemPrinted) {
  const TemporaryFolder folder;
  const std::string is_ready = (folder.path() / "ready").string();
  const Words program = joined({"--devices", "1"}, shell("if [ $RANK = 0 ]; then until [ -e " + is_ready +
                                                         " ]; do sleep 0.01; done; echo boom >&2; exit 7; fi; "
                                                         "trap 'seq 20; exit' TERM; touch " +
                                                         is_ready + "; while :; do sleep 0.01; done"));
  const int port = free_port();
  LrunProcess first(program, of_two_tasks(0, port));
  LrunProcess second(program, of_two_tasks(1, port));
  for (LrunProcess* node : {&first, &second}) EXPECT_EQ(node->wait().code, 7) << node->err();
  EXPECT_TRUE(contains(second.out(), "[1] 20\n")) << second.out();
  EXPECT_EQ(count(first.err(), "lrun: error: rank 0 exited with code 7\n"), 2U) << first.err();
}

/// What a manager tells each of four tasks on one host.
using TasksOfAHost = std::map<std::string, std::string> (*)(const std::string& rank, const std::string& job);

const std::map<std::string, TasksOfAHost> kTasksOfAHost = {
    {"Open MPI",
     [](const std::string& rank, const std::string& job) {
       return std::map<std::string, std::string>{
           {"OMPI_COMM_WORLD_RANK", rank},      {"OMPI_COMM_WORLD_SIZE", "4"},    {"OMPI_COMM_WORLD_LOCAL_RANK", rank},
           {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}, {"OMPI_MCA_orte_num_nodes", "1"}, {"PMIX_NAMESPACE", job}};
     }},
    {"Flux",
     [](const std::string& rank, const std::string& job) {
       return std::map<std::string, std::string>{
           {"FLUX_TASK_RANK", rank}, {"FLUX_TASK_LOCAL_ID", rank}, {"FLUX_JOB_SIZE", "4"}, {"FLUX_JOB_NNODES", "1"},
           {"FLUX_JOB_ID", job},     {"PMI_RANK", rank},           {"PMI_SIZE", "4"}};
     }},
    {"jsrun", [](const std::string& rank, const std::string& job) {
       return std::map<std::string, std::string>{{"JSM_NAMESPACE_RANK", rank},
                                                 {"JSM_NAMESPACE_SIZE", "4"},
                                                 {"JSM_NAMESPACE_LOCAL_RANK", rank},
                                                 {"JSM_NAMESPACE_LOCAL_SIZE", "4"},
                                                 {"LSB_JOBID", job}};
     }}};

std::vector<std::unique_ptr<LrunProcess>> four_tasks(TasksOfAHost told, const Words& words) {
  const std::string job = std::to_string(free_port());  // no other test has it
  std::vector<std::unique_ptr<LrunProcess>> tasks;
  for (const char* const rank : {"0", "1", "2", "3"}) {
    tasks.push_back(std::make_unique<LrunProcess>(words, LrunProcess::Options{.environment = told(rank, job)}));
  }
  return tasks;
}

TEST(SeveralNodes, AreOneRunOfARankEachWhereAManagerStartsSeveralTasksOnAHost) {
  for (const auto& [manager, told] : kTasksOfAHost) {
    const auto tasks = four_tasks(
        told, shell("echo $RANK/$WORLD_SIZE local $LOCAL_RANK/$LOCAL_WORLD_SIZE node $GROUP_RANK/$GROUP_WORLD_SIZE"));
    for (std::size_t rank = 0; rank < tasks.size(); ++rank) {
      EXPECT_EQ(tasks[rank]->wait().code, 0) << manager << ": " << tasks[rank]->err();
      EXPECT_EQ(tasks[rank]->out(), fmt::format("[{0}] {0}/4 local {0}/4 node 0/1\n", rank)) << manager;
    }
  }
}

TEST(SeveralNodes, OfARankEachEndTogetherWithOneVerdict) {
  for (const auto& [manager, told] : kTasksOfAHost) {
    const auto tasks = four_tasks(told, shell("if [ $RANK = 2 ]; then exit 7; fi; exec sleep 1000"));
    for (const auto& task : tasks) EXPECT_EQ(task->wait().code, 7) << manager << ": " << task->err();
    EXPECT_EQ(count(tasks[0]->err(), "lrun: error: rank 2 exited with code 7\n"), 1U) << tasks[0]->err();
    for (const std::size_t later : {1U, 2U, 3U}) EXPECT_EQ(tasks[later]->err(), "") << manager;
  }
}

TEST(SeveralNodes, OfARankEachTellOnceThatALauncherDied) {
  for (const std::size_t killed : {0U, 2U}) {
    const auto tasks = four_tasks(kTasksOfAHost.at("Open MPI"), shell("echo ready; exec sleep 1000"));
    for (const auto& task : tasks) ASSERT_TRUE(task->wait_for("ready")) << task->err();
    kill_whole(*tasks[killed]);
    std::string said;
    for (std::size_t rank = 0; rank < tasks.size(); ++rank) {
      if (rank == killed) continue;
      EXPECT_EQ(tasks[rank]->wait().code, 125) << tasks[rank]->err();
      said += tasks[rank]->err();
    }
    EXPECT_EQ(count(said, "lrun: error: "), 1U) << said;
  }
}

TEST(SeveralNodes, OfARankEachTellOnceThatTheirLineIsOfALauncherANode) {
  const auto tasks = four_tasks(kTasksOfAHost.at("Open MPI"), {"--nproc-per-node", "2", "true"});
  for (const auto& task : tasks) EXPECT_EQ(task->wait().code, 125) << task->err();
  EXPECT_TRUE(contains(tasks[0]->err(), "write 'lrun --nproc-per-node 2 …'")) << tasks[0]->err();
  for (const std::size_t later : {1U, 2U, 3U}) EXPECT_EQ(tasks[later]->err(), "");
}

TEST(SeveralNodes, OfOneMpirunLeaveItToTheFirstToSayThatAProgramIsNotThere) {
  const TemporaryFolder has_it;
  const TemporaryFolder has_it_not;
  std::filesystem::create_symlink("/bin/true", has_it.path() / "train");
  for (const TemporaryFolder* folder_of_first : {&has_it, &has_it_not}) {
    const int port = free_port();
    const auto start = [&](int rank, const TemporaryFolder& folder) {
      LrunProcess::Options options = of_two_tasks(rank, port);
      options.before_exec = [path = folder.path()] { std::filesystem::current_path(path); };
      return std::make_unique<LrunProcess>(Words{"--devices", "1", "./train"}, options);
    };
    const auto first = start(0, *folder_of_first);
    const auto second = start(1, has_it_not);
    for (LrunProcess* node : {first.get(), second.get()}) EXPECT_EQ(node->wait().code, 127) << node->err();
    EXPECT_TRUE(contains(first->err(), "lrun: error: ")) << first->err();
    EXPECT_TRUE(contains(first->err(), "No such file")) << first->err();
    EXPECT_EQ(second->err(), "");
  }
}

TEST(SeveralNodes, OfOneMpirunTellOnceWhatIsWrongInTheirLine) {
  for (const Words& words : {Words{"--bogus", "true"}, Words{"--num_nodes", "3", "true"}}) {
    LrunProcess first(words, of_two_tasks(0, free_port()));
    LrunProcess second(words, of_two_tasks(1, free_port()));
    for (LrunProcess* node : {&first, &second}) EXPECT_EQ(node->wait().code, 125) << node->err();
    EXPECT_TRUE(contains(first.err(), "lrun: error: ")) << first.err();
    EXPECT_EQ(second.err(), "");
  }
}

TEST(SeveralNodes, OfOneMpirunSayWhatIsMissingOnTheirHostAlone) {
  std::map<std::string, std::string> without_endpoint = of_two_tasks(1, free_port()).environment;
  without_endpoint.erase("MASTER_ADDR");
  LrunProcess second({"true"}, {.environment = without_endpoint});
  EXPECT_EQ(second.wait().code, 125);
  EXPECT_TRUE(contains(second.err(), ": MPICH gives 2 launchers their ranks, but no rendezvous endpoint\n"))
      << second.err();
}

TEST(SeveralNodes, ShowTheStacksOfAllNodesWhereOneHangs) {
  Job job({"--num_nodes", "2", "--hang-timeout", "1s"});
  LrunProcess& hangs = job.start({"--node-rank", "0"}, {"sleep", "1000"});
  LrunProcess& works =
      job.start({"--node-rank", "1", "--role", "another"}, shell("while :; do echo $RANK works; sleep 0.1; done"));
  EXPECT_EQ(hangs.wait().code, 124) << hangs.err();
  EXPECT_EQ(works.wait().code, 124) << works.err();
  EXPECT_TRUE(contains(works.err(), "\nrank 1, pid ")) << "where its rank is: " << works.err();
}

TEST(SeveralNodes, EndWhenOneCannotStartItsProgram) {
  TemporaryFolder folder;
  const std::string script = (folder.path() / "script").string();
  std::ofstream(script) << "#!/no/such/interpreter\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  Job job({"--num_nodes", "2", "--no-python"});
  LrunProcess& first = job.start({"--node-rank", "0"}, {script});
  LrunProcess& second = job.start({"--node-rank", "1", "--role", "another"}, {"sleep", "1000"});
  EXPECT_EQ(first.wait().code, 127) << first.err();
  EXPECT_EQ(second.wait().code, 127) << second.err();
  EXPECT_TRUE(contains(second.err(), "cannot run its program: No such file or directory")) << second.err();
}

TEST(SeveralNodes, HearWhyOneCannotStartWorkersAtAll) {
  Job job({"--num_nodes", "2"});
  LrunProcess& first = job.start({"--node-rank", "0"}, {"sleep", "1000"}, {.before_exec = forbid_to_start_workers});
  LrunProcess& second = job.start({"--node-rank", "1"}, {"sleep", "1000"});
  EXPECT_EQ(first.wait().code, 125) << first.err();
  EXPECT_NE(second.wait().code, 0) << second.err();
  EXPECT_TRUE(contains(second.err(), "Resource temporarily unavailable")) << second.err();
}

TEST(SeveralNodes, CanBeInterruptedWhileTheyWaitForOthersToLeave) {
  TemporaryFolder folder;
  const std::string script = (folder.path() / "script").string();
  std::ofstream(script) << "#!/no/such/interpreter\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  Job job({"--num_nodes", "3", "--no-python", "--rdzv-conf", "heartbeat_timeout=300"});
  LrunProcess& leader = job.start({"--node-rank", "0"}, {script});
  LrunProcess& stopped = job.start({"--node-rank", "1", "--role", "another"}, {"sleep", "1000"});
  ASSERT_TRUE(leader.wait_for("missing: 1 of 3 nodes")) << leader.err();
  const pid_t launcher = stopped.launcher_pid();
  ::kill(launcher, SIGSTOP);
  LrunProcess& third = job.start({"--node-rank", "2", "--role", "another"}, {"sleep", "1000"});
  ASSERT_TRUE(leader.wait_for("waiting until the other nodes have ended, too")) << leader.err();
  leader.signal(SIGTERM);
  EXPECT_EQ(leader.wait().code, 127) << "its verdict stands: " << leader.err();
  EXPECT_NE(third.wait().code, 0) << third.err();
  ::kill(launcher, SIGCONT);
  EXPECT_NE(stopped.wait().code, 0) << stopped.err();
}

TEST(SeveralNodes, TakeASignalToBothProcessesForOne) {
  const int port = free_port();
  LrunProcess quick({"--devices", "1", "--grace", "300", "--role", "another", "true"}, of_two_tasks(0, port));
  LrunProcess slow(joined({"--devices", "1", "--grace", "300"}, shell("trap 'sleep 1; exit 3' TERM; echo ready; "
                                                                      "while :; do sleep 1000 & wait; done")),
                   of_two_tasks(1, port));
  ASSERT_TRUE(slow.wait_for("ready")) << slow.err();
  ASSERT_TRUE(quick.wait_for("the workers of this node have ended; waiting for those of '")) << quick.err();
  EXPECT_TRUE(contains(quick.err(), "(node rank 1)")) << quick.err();
  ::kill(quick.launcher_pid(), SIGTERM);
  quick.signal(SIGTERM);
  EXPECT_EQ(slow.wait().code, 128 + SIGTERM) << slow.err();
  EXPECT_FALSE(contains(slow.err(), "is lost")) << "the other node waited for this one: " << slow.err();
  EXPECT_EQ(quick.wait().signal_number, SIGTERM) << quick.err();
}

TEST(SeveralNodes, SayWhoIsMissingWhenTheyDoNotMeet) {
  with_more_time([](int factor) -> std::string {
    const std::string limit = std::to_string(factor);
    Job job({"--num_nodes", "2", "--rdzv-conf", "join_timeout=" + limit});
    LrunProcess& alone = job.start({"--node-rank", "0"}, {"true"});
    EXPECT_EQ(alone.wait().code, 125);
    EXPECT_EQ(alone.out(), "");
    const std::string words = "the nodes did not meet: not enough nodes in " + limit + "s: joined: '";
    const bool tells = contains(alone.err(), words) && contains(alone.err(), "missing: 1 of 2 nodes (node rank 1)");
    return tells ? "" : "it does not say '" + words + "', nor who is missing: " + alone.err();
  });
}

TEST(SeveralNodes, AreToldWhenNodeRankZeroWaitsWhereNobodyComes) {
  const std::string endpoint = "192.0.2.1:" + std::to_string(free_port());  // nobody's address
  LrunProcess alone({"--num_nodes", "2", "--rdzv-endpoint", endpoint, "--node-rank", "0", "true"});
  ASSERT_TRUE(alone.wait_for("if '192.0.2.1' is another node, this one needs another '--node-rank'")) << alone.err();
  EXPECT_TRUE(contains(alone.err(),
                       "lrun: warning: node rank 0 hosts the rendezvous, and '192.0.2.1' is no address of this host: "
                       "others reach it there only if something forwards them\n"))
      << alone.err();
}

TEST(SeveralNodes, AreToldThatOtherHostsDoNotReachALoopbackAddress) {
  const std::string endpoint = "localhost:" + std::to_string(free_port());
  LrunProcess alone({"--num_nodes", "2", "--rdzv-endpoint", endpoint, "true"});
  EXPECT_TRUE(alone.wait_for(
      "hint: start the others with the same '--rdzv-endpoint'; other hosts do not reach 'localhost': name "
      "this one there\n"))
      << alone.err();
  EXPECT_TRUE(contains(alone.err(), "note: waiting for other nodes at " + endpoint + ": joined: '")) << alone.err();
}

TEST(SeveralNodes, CanBeInterruptedWhileTheyWait) {
  Job job({"--num_nodes", "2"});
  LrunProcess& alone = job.start({"--node-rank", "1"}, {"true"});
  ASSERT_TRUE(alone.wait_for("nobody serves the rendezvous")) << alone.err();
  alone.signal(SIGTERM);
  EXPECT_EQ(alone.wait().signal_number, SIGTERM);
  EXPECT_TRUE(contains(alone.err(), "note: received SIGTERM while waiting for other nodes: 127.0.0.1 port "))
      << alone.err();
  EXPECT_TRUE(contains(alone.err(), " was not reached; the job needs 2 nodes\n")) << alone.err();
  EXPECT_EQ(count(alone.err(),
                  "hint: is lrun started on '127.0.0.1', with '--node-rank 0' and the same '--rdzv-endpoint' (port "),
            1U)
      << alone.err();
}

/// Its place is free again, and nobody counts on it.
TEST(SeveralNodes, LeaveTheRendezvousWhenTheyAreAskedToEnd) {
  Job job({"--num_nodes", "3"});
  const Words program = shell("echo ran $RANK of $WORLD_SIZE");
  LrunProcess& leader = job.start({"--node-rank", "0"}, program);
  LrunProcess& leaver = job.start({"--node-rank", "1"}, program);
  ASSERT_TRUE(leaver.wait_for("missing: 1 of 3 nodes (node rank 2)")) << "both have joined: " << leaver.err();
  leaver.signal(SIGTERM);
  EXPECT_EQ(leaver.wait().signal_number, SIGTERM) << leaver.err();
  EXPECT_TRUE(contains(leaver.err(), "received SIGTERM while waiting for other nodes: joined: ")) << leaver.err();
  LrunProcess& second = job.start({"--node-rank", "1"}, program);
  LrunProcess& third = job.start({"--node-rank", "2"}, program);
  for (LrunProcess* node : {&leader, &second, &third}) {
    EXPECT_EQ(node->wait().code, 0) << node->err();
    EXPECT_EQ(node->out().find("ran "), node->out().rfind("ran ")) << "once: " << node->out();
    EXPECT_TRUE(contains(node->out(), " of 3\n")) << node->out();
  }
  EXPECT_EQ(leaver.out(), "") << "nothing was started";
}

TEST(SeveralNodes, KeepOutWhoDoesNotKnowTheSecret) {
  Job job({"--num_nodes", "2"});
  const std::string kHush = "a secret of this test";
  const Words program = shell("env; tr '\\0' '\\n' < /proc/$PPID/environ; tr '\\0' ' ' < /proc/$PPID/cmdline");
  const auto with_secret = [](const std::string& secret) {
    return LrunProcess::Options{.environment = {{"LRUN_JOB_SECRET", secret}}};
  };
  LrunProcess& leader = job.start({"--node-rank", "0", "-v"}, program, with_secret(kHush));
  for (const char* const wrong : {"another", ""}) {
    LrunProcess& foreign = job.start({"--node-rank", "1"}, program, with_secret(wrong));
    EXPECT_EQ(foreign.wait().code, 125) << foreign.err();
    EXPECT_TRUE(contains(foreign.err(), "LRUN_JOB_SECRET")) << foreign.err();
    EXPECT_TRUE(contains(foreign.err(), "hint: set LRUN_JOB_SECRET to the same value on every node")) << foreign.err();
    EXPECT_EQ(foreign.out(), "") << "nothing was started";
  }
  LrunProcess& friendly = job.start({"--node-rank", "1", "-v"}, program, with_secret(kHush));
  EXPECT_EQ(friendly.wait().code, 0) << friendly.err();
  EXPECT_EQ(leader.wait().code, 0) << leader.err();
  EXPECT_TRUE(contains(leader.err(), "rejected a launcher at 127.0.0.1: it has another LRUN_JOB_SECRET"))
      << leader.err();
  EXPECT_TRUE(contains(leader.err(), "it has no LRUN_JOB_SECRET, and this launcher has one")) << leader.err();
  for (const LrunProcess* node : {&leader, &friendly}) {
    EXPECT_TRUE(contains(node->out(), "RANK=")) << node->out();
    EXPECT_FALSE(contains(node->out() + node->err(), kHush)) << node->out() << node->err();
    for (const auto& entry : std::filesystem::recursive_directory_iterator(node->state())) {
      if (!entry.is_regular_file()) continue;
      std::ostringstream text;
      text << std::ifstream(entry.path()).rdbuf();
      EXPECT_FALSE(contains(text.str(), kHush)) << entry.path();
    }
  }
}

/// Whether anybody listens where the workers' store is to be.
const char* const kLookForStore =
    "(exec 3<>/dev/tcp/$MASTER_ADDR/$MASTER_PORT) 2> /dev/null && found=served || found=kept; "
    "echo $TORCHELASTIC_USE_AGENT_STORE $found";

TEST(SeveralNodes, LeaveTheStoreToRank0WhereTheyAreToldTo) {
  for (const char* const value : {"1", "0"}) {
    const LrunProcess::Options told{.environment = {{"TORCH_DISABLE_SHARE_RDZV_TCP_STORE", value}}};
    const std::string expected = std::string_view(value) == "1" ? "False kept" : "True served";
    Job job({"--num_nodes", "2", "--rdzv-backend", "c10d"});
    LrunProcess& first = job.start({}, {"bash", "-c", kLookForStore}, told);
    LrunProcess& second = job.start({}, {"bash", "-c", kLookForStore}, told);
    LrunProcess alone({"--standalone", "-n", "1", "bash", "-c", kLookForStore}, told);
    for (LrunProcess* node : {&first, &second, &alone}) {
      EXPECT_EQ(node->wait().code, 0) << node->err();
      EXPECT_TRUE(contains(node->out(), expected)) << node->out();
    }
  }
}

}  // namespace
}  // namespace lrun::test
