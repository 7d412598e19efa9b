// lrun --preload: ranks that a fork server forks are told from executed ones by their speed only.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "support/launchers_of_a_job.h"
#include "support/lrun_process.h"
#include "support/preload_runs.h"

namespace lrun::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

namespace fs = std::filesystem;

TEST_F(Preload, ImportsOnceForAllRanksAndRestarts) {
  const std::string script = write("train.py",
                                   "import os, sys, counted\n"
                                   "attempt = os.environ['TORCHELASTIC_RESTART_COUNT']\n"
                                   "print('attempt', attempt)\n"
                                   "sys.exit(0 if attempt == '1' else 3)\n");
  LrunProcess lrun({"-n", "2", "--max-restarts", "1", "--preload", "counted", script});
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_EQ(imports(), 1U) << lrun.err();
  EXPECT_EQ(count_of(lrun.out(), "attempt 1"), 2U) << lrun.out();
  EXPECT_THAT(lrun.err(), Not(HasPreloadTrouble())) << lrun.err();
}

TEST_F(Preload, MakesRanksChildrenOfTheLauncherWithSessionsOfTheirOwn) {
  const std::string script =
      write("train.py", "import os, time\nprint('is', os.getppid(), os.getsid(0) == os.getpid())\ntime.sleep(1000)\n");
  LrunProcess lrun({"-n", "2", "--preload", "counted", script});
  ASSERT_TRUE(lrun.read_until([&] { return count_of(lrun.out(), "True") == 2; })) << lrun.out() << lrun.err();
  EXPECT_EQ(count_of(lrun.out(), "is " + std::to_string(lrun.launcher_pid()) + " True"), 2U) << lrun.out();
  lrun.signal(SIGTERM);
  (void)lrun.wait();
}

TEST_F(Preload, GivesEachOfManyRanksItsOwnEnvironmentAndDescriptors) {
  const std::string script = write("train.py",
                                   "import os, sys\n"
                                   "fds = '/proc/self/fd'\n"
                                   "open(f'{sys.argv[1]}/{os.environ[\"RANK\"]}', 'w').write(os.readlink(fds + '/1'))\n"
                                   "print('is', os.environ['LOCAL_RANK'], len(os.listdir(fds)))\n");
  const fs::path pipes = folder_.path() / "pipes";
  fs::create_directory(pipes);
  constexpr int kRanks = 19;
  const Ended end = run({"-n", std::to_string(kRanks), "--preload", "json"}, {script, pipes.string()});
  EXPECT_EQ(end.code, 0) << end.err;
  std::set<std::string> outputs;
  for (int rank = 0; rank < kRanks; ++rank) {
    const std::string name = std::to_string(rank);
    EXPECT_THAT(end.out, HasSubstr("] is " + name + " 5\n"));  // 0 to 3, and that of the list
    outputs.insert(read("pipes/" + name));
  }
  EXPECT_EQ(outputs.size(), kRanks);
  EXPECT_THAT(end.err, Not(HasPreloadTrouble())) << end.err;
}

TEST_F(Preload, GivesAScriptWhatPythonGivesIt) {
  const std::string script = write("train.py", R"(
import atexit, inspect, json, os, resource, signal, sys, threading
atexit.register(print, 'at exit')
threading.Thread(target=lambda: (threading.main_thread().join(), print('thread'))).start()
print(sys.argv, sys.path, __name__, __file__, __spec__, __package__, sorted(globals()), sys.orig_argv)
print(sys.modules['__main__'].__dict__ is globals(), 'sitecustomize' in sys.modules, sys.flags)
print(len(inspect.stack()), sys.getrecursionlimit(), os.getcwd(), os.umask(0o22), os.listdir('/proc/self/fd'))
print(resource.getrlimit(resource.RLIMIT_NOFILE), sorted(os.sched_getaffinity(0)))
print([signal.getsignal(number) for number in range(1, 32)], signal.pthread_sigmask(signal.SIG_BLOCK, []))
print([open('/proc/self/' + name).read() for name in ('comm', 'cmdline')])
print('in the cgroup of a run', '/lrun-' in open('/proc/self/cgroup').read())
names = 'RANK LOCAL_RANK WORLD_SIZE OMP_NUM_THREADS PYTHONPATH PYTHONFAULTHANDLER LRUN_FORK_SERVER'.split()
print({name: os.environ.get(name) for name in names}, 'LRUN_PROGRESS_FD' in os.environ)
print(sys.stdin.read(), sys.stdout.write_through, sys.stdout.line_buffering, sys.stdout.encoding, sys.stdin.isatty())
sys.exit(7)
)");
  expect_equal({script, "a b", "--flag", "$local_rank"});
  expect_equal({"python3", script});
  expect_equal({script}, {.environment = {{"PYTHONPATH", folder_.path().string()}}});
}

TEST_F(Preload, RunsModulesAndTextsAsPythonDoes) {
  write("part.py", "import sys\nprint(sys.argv, sys.path[:2], __spec__.name)\nraise KeyError('x')\n");
  expect_equal({"--chdir", folder_.path().string(), "-m", "part", "1"});
  expect_equal({"python3", "-c", "import sys; print(sys.argv, sys.path[0]); 1 / 0", "1"});
}

TEST_F(Preload, PrintsTheSameTracebacks) {
  expect_equal({write("error.py", "def step():\n    raise ValueError('bad loss')\nstep()\n")});
  expect_equal({write("syntax.py", "def step(:\n")});
  expect_equal({write("text.py", "import sys\nsys.exit('no data')\n")});
  expect_equal({write("hook.py", "import sys\nsys.excepthook = lambda *error: print('hook', error[:2])\n1 / 0\n")});
  expect_equal({write("interrupt.py", "raise KeyboardInterrupt\n")});
}

/// Lines of ranks come in any order, those of one rank in its own.
std::vector<std::string> lines_with(const std::string& beginning, const std::string& text) {
  std::vector<std::string> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(beginning)) found.push_back(line);
  }
  return found;
}

TEST_F(Preload, PrintsInEachRankWhatAnImportPrints) {
  write("loud.py", "import sys\nprint('loud')\nprint('warned', file=sys.stderr)\n");
  const std::string script = write("train.py", "import loud\nprint('begins')\n");
  const Ended end = run({"-n", "2", "--output", "prefix", "--preload", "loud"}, {script});
  EXPECT_EQ(end.code, 0) << end.err;
  for (const std::string rank : {"[0] ", "[1] "}) {
    EXPECT_THAT(lines_with(rank, end.out), ElementsAre(rank + "loud", rank + "begins"));
    EXPECT_THAT(end.err, HasSubstr(rank + "warned"));
  }
}

TEST_F(Preload, KeepsWhatImportsDoToVariables) {
  fs::create_directory(folder_.path() / "site");
  write("site/sitecustomize.py",
        "import os\nos.environ['BY_SITE'] = '1'\nos.environ.pop('REMOVED', None)\nprint('site')\n");
  write("sets.py", "import os\nos.environ['BY_IMPORT'] = '2'\n");
  const std::string program =
      write("vars.py", "import os, sets\nprint([os.environ.get(n) for n in ('BY_SITE', 'BY_IMPORT', 'REMOVED')])\n");
  LrunProcess::Options options;
  options.environment = {{"PYTHONPATH", (folder_.path() / "site").string()}, {"REMOVED", "yes"}};
  const Ended forked = run({"-n", "1", "--preload", "sets"}, {program}, options);
  EXPECT_EQ(forked.out, "[0] site\n[0] ['1', '2', None]\n") << forked.err;
  EXPECT_EQ(forked.out, run({"-n", "1"}, {program}, options).out);
}

TEST_F(Preload, LetsAProgramChangeAndFinishItsStreams) {
  expect_equal({write("utf8.py", "import sys\nsys.stdout.reconfigure(encoding='utf-8')\nprint('\\u20ac')\n")});
  const std::string kept = (folder_.path() / "kept").string();
  const std::string program = write("keeps.py",
                                    "import sys\nfile = open(sys.argv[1], 'w')\ndef log(text): file.write(text)\n"
                                    "log('x' * 100)\n");
  EXPECT_EQ(run({"-n", "1", "--preload", "json"}, {program, kept}).code, 0);
  EXPECT_EQ(read("kept").size(), 100U) << "Python closes at its end what a program leaves open";
}

TEST_F(Preload, ForksAfterAModuleThatClosesAStream) {
  write("silent.py",
        "import sys\nclass Copy:\n    def write(self, text): pass\n    def flush(self): pass\n"
        "sys.stdout.close()\nsys.stderr = Copy()\n");
  const std::string script = write("train.py", "import silent, counted, sys\nsys.exit(9)\n");
  const Ended end = run({"-n", "2", "--preload", "silent,counted"}, {script});
  EXPECT_EQ(end.code, 9) << end.err;
  EXPECT_EQ(imports(), 1U) << end.err;
}

TEST_F(Preload, LetsTheProgramMeetAClosedPipe) {
  write("loud.py", "print('loud')\n");
  const std::string program = write("quiet.py", "import sys\nsys.exit(3)\n");
  EXPECT_EQ(run({"-n", "1", "--output", "raw", "--preload", "loud"}, {program},
                {.before_exec = [] { (void)::dup2(::open("/dev/full", O_WRONLY | O_CLOEXEC), STDOUT_FILENO); }})
                .code,
            3);
}

TEST_F(Preload, GivesEachRankSeedsOfItsOwn) {
  const std::string script = write("train.py", "import random\nprint('seed', random.random())\n");
  const Ended end = run({"-n", "2", "--preload", "random"}, {script});
  const std::string first = end.out.substr(end.out.find("seed"), end.out.find('\n') - end.out.find("seed"));
  EXPECT_EQ(count_of(end.out, first), 1U) << end.out;
}

/// A fork copies an entry of each page: with those of 2 MiB it takes a third of the time.
TEST_F(Preload, PutsWhatImportsFillIntoLargePages) {
  write("filled.py", R"(
import mmap
fill = mmap.mmap(-1, 64 << 20, flags=mmap.MAP_PRIVATE)
fill.madvise(mmap.MADV_NOHUGEPAGE)
fill.write(b'x' * (64 << 20))
fill.madvise(mmap.MADV_HUGEPAGE)
)");
  const std::string program = write("pages.py", R"(
import ctypes, filled
with open('/proc/self/smaps') as smaps:
    large = sum(int(line.split()[1]) for line in smaps if line.startswith('AnonHugePages:'))
begin = -(-ctypes.addressof(ctypes.c_char.from_buffer(filled.fill)) // (2 << 20)) * (2 << 20)
collapse = ctypes.CDLL(None).madvise(ctypes.c_void_p(begin), ctypes.c_size_t(62 << 20), 25)
print('large' if large >= 48 * 1024 else 'small' if collapse == 0 else 'cannot')
)");
  const Ended forked = run({"--output", "raw", "--preload", "filled"}, {program});
  if (forked.out == "cannot\n") GTEST_SKIP() << "this kernel makes no large pages here";
  EXPECT_EQ(forked.out, "large\n") << forked.err;
}

TEST_F(Preload, BindsRanksToTheirCpus) {
  if (::sysconf(_SC_NPROCESSORS_ONLN) < 2) GTEST_SKIP() << "needs two CPUs";
  const std::string script =
      write("train.py", "import os\nprint('cpus', sorted(os.sched_getaffinity(0)), os.environ['OMP_NUM_THREADS'])\n");
  const Ended plain = run({"-n", "2", "--bind", "core"}, {script});
  const Ended forked = run({"-n", "2", "--bind", "core", "--preload", "json"}, {script});
  const auto sorted_lines = [](std::string text) {
    std::sort(text.begin(), text.end());
    return text;
  };
  EXPECT_EQ(sorted_lines(forked.out), sorted_lines(plain.out)) << forked.err;
}

/// As OpenBLAS does, which numpy loads.
TEST_F(Preload, ForksAfterALibraryThatEndsItsThreadsBeforeAFork) {
  write("blas.py",
        "import os, threading\nstop = threading.Event()\n"
        "thread = threading.Thread(target=stop.wait, daemon=True)\nthread.start()\n"
        "os.register_at_fork(before=lambda: (stop.set(), thread.join()))\n");
  const std::string script = write("train.py", "import blas, counted\n");
  const Ended end = run({"-n", "2", "--preload", "blas,counted"}, {script});
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_EQ(imports(), 1U) << end.err;
}

/// One warning with the reason; the run is as without --preload.
TEST_F(Preload, ThatCannotForkIsToldAndTheRanksStartWithout) {
  write("broken.py", "raise RuntimeError('no licence\\nsecond line')\n");
  write("exits.py", "import sys\nsys.exit(4)\n");
  write("dies.py", "import os\nos._exit(4)\n");
  write("threads.py",
        "import threading, time\nthreading.Thread(target=time.sleep, args=[1000], daemon=True).start()\n");
  write("forks.py", "import os\nif os.fork() == 0:\n    import time\n    time.sleep(1000)\n");
  write("copies.py", "import os\nos.fork()\n");
  write("opens.py", "import socket\nkept = socket.socket()\n");
  write("reads.py", "kept = open('/dev/zero')\n");
  write("closes.py", "import os\nos.close(2)\n");
  write("closes_all.py", "import os\nos.closerange(0, 256)\n");
  const std::string script = write("train.py", "import sys\nprint('began')\nsys.exit(9)\n");
  const std::pair<const char*, const char*> cases[] = {
      {"nowhere", "'--preload nowhere': 'nowhere' cannot be imported: ModuleNotFoundError: No module named 'nowhere'"},
      {"json,broken", "'broken' cannot be imported: RuntimeError: no licence; every worker imports by itself"},
      {"exits", "'exits' cannot be imported: SystemExit: 4"},
      {"dies", "'--preload dies': the import of 'dies' has ended the interpreter; every worker imports by itself"},
      {"json,threads", "the import of 'threads' has left 1 thread running"},
      {"forks,json", "the import of 'forks' has left a process"},
      {"copies", "the import of 'copies' has left a process"},
      {"opens", "the import of 'opens' has left 'socket:["},
      {"reads", "the import of 'reads' has left '/dev/zero' open"},
      {"closes", "the import of 'closes' has closed descriptors that were open"},
      {"closes_all", "the import of 'closes_all'"}};
  for (const auto& [module, reason] : cases) {
    const Ended end = run({"-n", "2", "--preload", module}, {script});
    EXPECT_EQ(end.code, 9) << module;
    EXPECT_THAT(end.err, HasSubstr(reason));
    EXPECT_EQ(count_of(end.err, "lrun: warning"), 1U) << end.err;
    EXPECT_GE(count_of(end.out, "began"), 1U) << end.out;
  }
}

TEST_F(Preload, ThatHangsEndsWithItsTime) {
  write("hangs.py", "import time\ntime.sleep(1000)\n");
  const std::string script = write("train.py", "print('began')\n");
  const Ended end = run({"-n", "1", "--start-timeout", "1s", "--preload", "hangs"}, {script});
  EXPECT_THAT(end.err, HasSubstr("not imported within 1s; every worker imports by itself"));
  EXPECT_THAT(end.out, HasSubstr("began"));
}

TEST_F(Preload, OfAPythonWithoutSiteIsToldAndTheProgramRunsOnlyAsRanks) {
  const std::string script =
      write("train.py", "import os\nopen(os.path.dirname(__file__) + '/runs', 'a').write('x')\n");
  for (const char* const option : {"-I", "-E", "-S"}) {
    fs::remove(folder_.path() / "runs");
    const Ended end = run({"-n", "2", "--preload", "json"}, {"python3", option, script});
    EXPECT_EQ(end.code, 0) << end.err;
    EXPECT_THAT(end.err, HasSubstr("this Python runs no 'sitecustomize'"));
    EXPECT_EQ(read("runs"), "xx");
  }
}

TEST_F(Preload, EndsWithCtrlCDuringTheImport) {
  write("hangs.py", "import time\nprint('importing')\nopen(__file__ + '.began', 'w')\ntime.sleep(1000)\n");
  const std::string script = write("train.py", "print('began')\n");
  LrunProcess lrun({"-n", "1", "--preload", "hangs", script});
  ASSERT_TRUE(eventually([&] { return fs::exists(folder_.path() / "hangs.py.began"); }));
  lrun.signal(SIGINT);
  EXPECT_EQ(lrun.wait().signal_number, SIGINT);
  EXPECT_THAT(lrun.err(), HasSubstr("note: received SIGINT during the import of 'hangs'"));
  EXPECT_EQ(lrun.out(), "");
}

TEST_F(Preload, BlamesARankThatIsKilled) {
  const std::string script = write("train.py",
                                   "import os, signal, time\n"
                                   "if os.environ['RANK'] == '1':\n    os.kill(os.getpid(), signal.SIGKILL)\n"
                                   "time.sleep(1000)\n");
  const Ended end = run({"-n", "2", "--grace", "1s", "--preload", "counted"}, {script});
  EXPECT_EQ(end.code, 137) << end.err;
  EXPECT_THAT(end.err, HasSubstr("rank 1"));
}

/// The pid of the process with the name that fork_server.py gives itself; -1: there is none.
pid_t fork_server_below(const LrunProcess& lrun) {
  for (const pid_t pid : lrun.processes()) {
    if (program_name(pid) == "fork-server") return pid;
  }
  return -1;
}

TEST_F(Preload, GoesOnWithoutAServerThatWasKilledOrStopped) {
  const std::string script = write("train.py",
                                   "import counted, os, sys, time\nprint('began', flush=True)\n"
                                   "if os.environ['TORCHELASTIC_RESTART_COUNT'] == '0':\n    time.sleep(1000)\n");
  for (const int signal_number : {SIGKILL, SIGSTOP}) {
    fs::remove(folder_.path() / "imports");
    LrunProcess lrun({"-n", "2", "--max-restarts", "1", "--preload", "counted", script});
    ASSERT_TRUE(lrun.read_until([&] { return count_of(lrun.out(), "began") == 2; })) << lrun.err();
    const pid_t server = fork_server_below(lrun);
    ASSERT_GT(server, 0);
    ASSERT_EQ(::kill(server, signal_number), 0);
    for (const pid_t pid : lrun.workers()) {
      if (pid != server) ::kill(pid, SIGKILL);
    }
    EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
    const std::string what = signal_number == SIGKILL ? "has ended" : "does not answer";
    EXPECT_EQ(count_of(lrun.err(), "'--preload counted': the fork server " + what + "; every"), 1U) << lrun.err();
    EXPECT_EQ(imports(), 3U) << "once by the server, and by each of the two ranks";
  }
}

TEST_F(Preload, LeavesNothingWhenLrunIsKilled) {
  const std::string script = write("train.py", "import time\nprint('began', flush=True)\ntime.sleep(1000)\n");
  for (const bool is_launcher : {false, true}) {
    LrunProcess lrun({"-n", "2", "--preload", "counted", script});
    ASSERT_TRUE(lrun.read_until([&] { return count_of(lrun.out(), "began") == 2; })) << lrun.err();
    ASSERT_EQ(::kill(is_launcher ? lrun.launcher_pid() : lrun.pid(), SIGKILL), 0);
    (void)lrun.wait();
    EXPECT_TRUE(eventually([&] { return lrun.processes().empty(); }));
  }
}

TEST_F(Preload, ImportsOnceOnEachNodeAlsoForALaterRound) {
  const std::string script = write("train.py",
                                   "import os, time\n"
                                   "print('world', os.environ['WORLD_SIZE'], flush=True)\n"
                                   "if os.environ['WORLD_SIZE'] == '2':\n    time.sleep(1000)\n");
  Job job({"--num_nodes", "1:2", "-n", "1", "--preload", "counted"});
  LrunProcess& first = job.start({}, {script});
  LrunProcess& second = job.start({}, {script});
  for (LrunProcess* const node : {&first, &second}) ASSERT_TRUE(node->wait_for("world 2")) << node->err();
  kill_whole(second);
  EXPECT_EQ(first.wait().code, 0) << first.err();
  EXPECT_THAT(first.out(), HasSubstr("world 1"));
  EXPECT_EQ(imports(), 2U) << first.err();
}

TEST_F(Preload, IsIgnoredWhereItCannotBe) {
  const std::string script = write("train.py", "print('began')\n");
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"--preload", "json", "sh", "-c", "echo began"}, "'--preload' is ignored: 'sh' is not started with Python"},
      {{"--preload", "json", "--wrap", "env A=1", script}, "'--preload' is ignored: not with '--wrap'"},
      {{"--compat=torchrun", "--preload", "json", script}, "'--preload' is ignored: not under torchrun's name"}};
  for (const auto& [arguments, warning] : cases) {
    const Ended end = run({"-n", "1"}, arguments);
    EXPECT_EQ(end.code, 0) << end.err;
    EXPECT_THAT(end.err, HasSubstr(warning));
    EXPECT_THAT(end.out, HasSubstr("began"));
  }
}

TEST_F(Preload, TrainsWithTorch) {
  const char* const python = std::getenv("LRUN_TEST_PYTHON");
  if (python == nullptr) GTEST_SKIP() << "LRUN_TEST_PYTHON names no Python that has torch";
  const std::string script = write("train.py", R"(
import os, torch, torch.distributed as dist
print('seed', torch.initial_seed())
dist.init_process_group('gloo')
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.ones(3, 4)).sum().backward()
optimizer.step()
total = torch.ones(1)
dist.all_reduce(total)
dist.destroy_process_group()
print('sum', int(total), 'attempt', os.environ['TORCHELASTIC_RESTART_COUNT'])
raise SystemExit(os.environ['TORCHELASTIC_RESTART_COUNT'] == '0')
)");
  const Ended end = run(
      {"-n", "2", "--python", python, "--max-restarts", "1", "--preload", "torch,torch.optim,torch._dynamo"}, {script});
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_EQ(count_of(end.out, "sum 2 attempt 1"), 2U) << end.out;
  const std::size_t at = end.out.find("seed ");
  EXPECT_EQ(count_of(end.out, end.out.substr(at, end.out.find('\n', at) + 1 - at)), 1U) << end.out;
  EXPECT_THAT(end.err, Not(HasPreloadTrouble())) << end.err;
}

}  // namespace
}  // namespace lrun::test
