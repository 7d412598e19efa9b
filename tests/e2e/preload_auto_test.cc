// lrun --preload auto: what the first worker of earlier runs imported.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <utility>

#include "support/lrun_process.h"
#include "support/preload_runs.h"
#include "support/words.h"

namespace lrun::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

namespace fs = std::filesystem;

/// Runs of --preload auto with one state folder. Modules are installed where pip --user puts them.
class PreloadAuto : public Preload {
 protected:
  void install(const std::string& name, const std::string& text) const {
    const std::string installer = write("install.py",
                                        "import os, site, sys\n"
                                        "folder = site.getusersitepackages()\n"
                                        "os.makedirs(os.path.join(folder, 'some-1.dist-info'), exist_ok=True)\n"
                                        "open(os.path.join(folder, sys.argv[1]), 'w').write(sys.argv[2])\n");
    EXPECT_EQ(run({"-n", "1"}, {installer, name, text}, options()).code, 0);
  }
  [[nodiscard]] Ended run_auto(const std::string& script) const {
    return run({"-n", "2", "--preload", "auto"}, {script}, options());
  }
  [[nodiscard]] LrunProcess::Options options() const {
    return {.environment = {{"LRUN_STATE", (folder_.path() / "state").string()},
                            {"PYTHONUSERBASE", (folder_.path() / "base").string()}}};
  }
  /// A module that notes each of its imports, and then does `more`.
  [[nodiscard]] std::string counting(const std::string& more = "") const {
    return "open('" + (folder_.path() / "imports").string() + "', 'a').write('x')\n" + more;
  }
};

TEST_F(PreloadAuto, ImportsWhatTheFirstWorkerOfTheRunBeforeDid) {
  install("installed.py", counting());
  install("probed.py", counting());
  write("own.py", "import os\nprint('own', os.environ['RANK'])\n");
  const std::string script = write("train.py",
                                   "import importlib.util, os, sys, time\n"
                                   "importlib.util.find_spec('probed')\n"
                                   "try:\n    import nowhere\nexcept ImportError:\n    pass\n"
                                   "import installed, own\n"
                                   // The first failure would stop a worker that has not imported them yet.
                                   "rank, folder = os.environ['RANK'], os.environ['LRUN_MEMORY_DIR']\n"
                                   "open(folder + '/' + rank, 'w').close()\n"
                                   "while len(os.listdir(folder)) < 2:\n    time.sleep(0.01)\n"
                                   "sys.exit(3)\n");
  const Ended first = run_auto(script);
  EXPECT_EQ(first.code, 3) << first.err;
  EXPECT_EQ(count_of(first.err, "'--preload auto': the next run imports what this one's first worker does"), 1U);
  EXPECT_EQ(imports(), 2U) << "each worker for itself";
  for (const std::size_t expected : {3U, 4U}) {
    const Ended next = run_auto(script);
    EXPECT_EQ(next.code, 3) << next.err;
    EXPECT_EQ(imports(), expected) << "the fork server once, and nothing that was only looked for";
    EXPECT_THAT(next.out, HasSubstr("own 1"))
        << "a module of the user may have changed, and is imported by each worker";
    EXPECT_THAT(next.err, Not(HasPreloadTrouble()));
  }
  const std::string other = write("other.py", "print('other')\n");
  EXPECT_THAT(run_auto(other).err, HasSubstr("the next run imports")) << "another program has a list of its own";
  EXPECT_EQ(imports(), 4U);
}

TEST_F(PreloadAuto, LeavesAModuleToTheWorkersThatIsAnotherNow) {
  install("shared.py", "print('installed')\n");
  const std::string script = write("train.py", "import shared\n");
  EXPECT_EQ(count_of(run_auto(script).out, "installed"), 2U);
  write("shared.py", "import os\nprint('own', os.environ['RANK'])\n");
  EXPECT_THAT(run_auto(script).out, AllOf(HasSubstr("own 0"), HasSubstr("own 1"), Not(HasSubstr("installed"))));
}

TEST_F(PreloadAuto, LearnsFromARunThatWasStopped) {
  install("installed.py", counting());
  const std::string script = write("train.py",
                                   "import installed, json, time\n"
                                   "print('ready', flush=True)\ntime.sleep(1000)\n");
  for (const std::size_t expected : {2U, 3U}) {
    LrunProcess lrun({"-n", "2", "--preload", "auto", script}, options());
    ASSERT_TRUE(lrun.read_until([&] { return count_of(lrun.out(), "ready") == 2; })) << lrun.err();
    lrun.signal(SIGTERM);
    (void)lrun.wait();
    EXPECT_EQ(imports(), expected) << lrun.err();
  }
}

TEST_F(PreloadAuto, LeavesOutWhatCannotBeForked) {
  install("threads.py",
          "import threading, time\nthreading.Thread(target=time.sleep, args=[1000], daemon=True).start()\n");
  install("ranked.py", "import os\nRANK = os.environ['RANK']\n");
  install("installed.py", counting());
  const std::string script = write("train.py", "import threads, ranked, installed\n");
  EXPECT_EQ(run_auto(script).code, 0);
  for (const auto& [reason, module] : {std::pair("the import of 'threads' has left 1 thread running", "threads"),
                                       std::pair("KeyError: 'RANK'", "ranked")}) {
    const Ended next = run_auto(script);
    EXPECT_EQ(next.code, 0) << next.err;
    EXPECT_THAT(next.err,
                AllOf(HasSubstr(reason), HasSubstr("the next run leaves '" + std::string(module) + "' out; ")));
  }
  EXPECT_EQ(imports(), 6U);
  const Ended last = run_auto(script);
  EXPECT_EQ(last.code, 0) << last.err;
  EXPECT_EQ(imports(), 7U) << last.err;
  EXPECT_THAT(last.err, Not(HasPreloadTrouble()));
}

TEST_F(PreloadAuto, LeavesOutWhatEndsTheServer) {
  install("dies.py", "import os\nif 'RANK' not in os.environ:\n    os._exit(4)\n");
  install("crashes.py", "import os\nif 'RANK' not in os.environ:\n    os.abort()\n");
  install("installed.py", counting());
  const std::string script = write("train.py", "import dies, crashes, installed\n");
  EXPECT_EQ(run_auto(script).code, 0);
  for (const std::string module : {"dies", "crashes"}) {
    const Ended next = run_auto(script);
    EXPECT_EQ(next.code, 0) << next.err;
    EXPECT_THAT(next.err, HasSubstr("'--preload auto': the import of '" + module +
                                    "' has ended the interpreter; the next run leaves '" + module +
                                    "' out; every worker imports by itself"));
  }
  EXPECT_EQ(imports(), 6U);
  const Ended last = run_auto(script);
  EXPECT_EQ(imports(), 7U) << last.err;
  EXPECT_THAT(last.err, Not(HasPreloadTrouble()));
}

TEST_F(PreloadAuto, DoesNotBlameAModuleWhoseServerWasKilledOrIsSlow) {
  const std::string importing = (folder_.path() / "importing").string();
  install("slow.py", "import os, time\nif 'RANK' not in os.environ:\n    open('" + importing +
                         "', 'w').write(str(os.getpid()) + '.')\n    time.sleep(1000)\n");
  const std::string script = write("train.py", "import slow\n");
  EXPECT_EQ(run_auto(script).code, 0);
  for (const int signal_number : {SIGKILL, SIGTERM}) {
    fs::remove(importing);
    LrunProcess lrun({"-n", "1", "--preload", "auto", script}, options());
    ASSERT_TRUE(lrun.read_until([&] { return contains(read("importing"), "."); })) << lrun.err();
    ::kill(std::stoi(read("importing")), signal_number);
    EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
    EXPECT_THAT(lrun.err(), HasSubstr("the interpreter has ended during the import of 'slow'; every worker"));
  }
  const Ended late = run({"-n", "1", "--preload", "auto", "--start-timeout", "5s"}, {script}, options());
  EXPECT_EQ(late.code, 0) << late.err;
  EXPECT_THAT(late.err, HasSubstr("not imported within 5s; every worker imports by itself"));
}

/// The list cannot be read, or written.
TEST_F(PreloadAuto, SaysWhereNothingIsLearned) {
  fs::create_directory(folder_.path() / "state");
  write("state/preload", "a file in place of the folder");
  const std::string script = write("train.py", "print('began')\n");
  for (int i = 0; i < 2; ++i) {
    const Ended end = run_auto(script);
    EXPECT_EQ(end.code, 0) << end.err;
    EXPECT_THAT(end.err, AllOf(HasSubstr("'--preload auto': nothing is learned, as '" +
                                         (folder_.path() / "state/preload").string() + "/"),
                               HasSubstr("' cannot be written")));
  }
}

TEST_F(PreloadAuto, BlamesASitecustomizeForItsThread) {
  install("installed.py", counting());
  const std::string script = write("train.py", "import installed\n");
  EXPECT_EQ(run_auto(script).code, 0);
  write("sitecustomize.py",
        "import threading, time\nthreading.Thread(target=time.sleep, args=[1000], daemon=True).start()\n");
  LrunProcess::Options with_hook = options();
  with_hook.environment["PYTHONPATH"] = folder_.path().string();
  for (int i = 0; i < 2; ++i) {
    const Ended next = run({"-n", "2", "--preload", "auto"}, {script}, with_hook);
    EXPECT_THAT(next.err, HasSubstr("its 'sitecustomize' has left 1 thread running; every worker imports by itself"));
  }
  EXPECT_EQ(imports(), 6U);
  EXPECT_EQ(run_auto(script).code, 0);
  EXPECT_EQ(imports(), 7U);
}

}  // namespace
}  // namespace lrun::test
