// Every kind of ending, and all that a user sees of it: tests/golden/verdict/KIND.txt.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <ostream>
#include <string>
#include <vector>

#include "process/program_path.h"
#include "support/golden.h"
#include "support/lrun_process.h"

namespace lrun::test {
namespace {

void no_core_files() {
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
}

struct Ending {
  std::string name;
  std::vector<std::string> arguments;  ///< of lrun
};

void PrintTo(const Ending& ending, std::ostream* out) { *out << ending.name; }

class Verdict : public ::testing::TestWithParam<Ending> {};

struct NameOfEnding {
  std::string operator()(const ::testing::TestParamInfo<Ending>& info) const {
    std::string name = info.param.name;
    for (char& letter : name) {
      if (letter == '-') letter = '_';
    }
    return name;
  }
};

/// Files for those endings that are about a file.
class Files {
 public:
  Files() {
    (void)folder_.script("not-executable", "#!/bin/sh\n", false);
    (void)folder_.script("no-interpreter", "#!/no/such/interpreter\n");
    (void)folder_.script("windows-lines", "#!/bin/sh\r\necho\r\n");
    (void)folder_.script("just-text", "just text\n");
    (void)folder_.script("empty", "");
    (void)folder_.script("calls-missing.sh", "#!/bin/sh\nno-such-command --x\nexit $?\n");
    (void)folder_.script("raises.py", "def step():\n    raise ValueError('bad batch')\nstep()\n");
    (void)folder_.script(
        "chained.py", "try:\n    raise KeyError('x')\nexcept KeyError as e:\n    raise RuntimeError('no x') from e\n");
    (void)folder_.script("syntax.py", "def f(:\n    pass\n");
    (void)folder_.script("missing-module.py", "import no_such_module_of_lrun\n");
    (void)folder_.script("missing-library.py",
                         "raise OSError('libno-such.so: cannot open shared object file: No such file')\n");
    (void)folder_.script("missing-file.py", "open('no-such-file.bin')\n");
    (void)folder_.script("arguments.py",
                         "import argparse\nparser = argparse.ArgumentParser()\n"
                         "parser.add_argument('--lr', required=True)\nparser.parse_args()\n");
    (void)folder_.script("exit-text.py", "import sys\nsys.exit('bad arguments')\n");
    (void)folder_.script("interrupt.py", "raise KeyboardInterrupt\n");
    (void)folder_.script("assertion.py", "batch = []\nassert batch, 'empty batch'\n");
    (void)folder_.script("ignored.py",
                         "class A:\n    def __del__(self):\n        raise ValueError('noise')\na = A()\nraise "
                         "RuntimeError('the cause')\n");
    (void)folder_.script("port.py",
                         "import socket\na = socket.socket()\na.bind(('127.0.0.1', 0))\na.listen()\nb = "
                         "socket.socket()\nb.bind(a.getsockname())\n");
    (void)folder_.script("no-space.py", "f = open('/dev/full', 'w')\nf.write('x' * 100000)\nf.flush()\n");
    (void)folder_.script("crash.py", "import ctypes\ndef step(batch):\n    ctypes.memset(batch, 0, 1)\nstep(0)\n");
    // Says the same as lrun does where it reads stacks, and nothing else is asked.
    std::filesystem::create_directory(folder_.path() / "tools");
    (void)folder_.script("tools/eu-stack",
                         "#!/bin/sh\necho '#0  0x1 pause - /lib/libc.so.6'\necho '#1  0x2 main - /bin/fault_worker'\n");
    std::filesystem::create_symlink("loop", folder_.path() / "loop");
    std::filesystem::create_directory(folder_.path() / "folder");
  }
  [[nodiscard]] const std::filesystem::path& path() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

std::string python_path() {
  const char* const path = std::getenv("PATH");
  return find_program("python3", path != nullptr ? path : "", {}).path;
}

TEST_P(Verdict, IsTheGoldenOne) {
  const Files files;
  std::vector<std::string> arguments{"--log-dir", "/dev/null"};
  for (std::string argument : GetParam().arguments) {
    if (argument == "FAULT") argument = LRUN_FAULT_WORKER;
    arguments.push_back(std::move(argument));
  }
  const std::string path = (files.path() / "tools").string() + ":" + std::getenv("PATH");
  LrunProcess lrun(arguments, {.environment = {{"PYTHONDONTWRITEBYTECODE", "1"}, {"PATH", path}}, .before_exec = [&] {
                                 no_core_files();
                                 (void)!::chdir(files.path().c_str());
                               }});
  expect_golden("verdict/" + GetParam().name + ".txt",
                transcript(lrun, {{files.path().string(), "FOLDER"},
                                  {LRUN_FAULT_WORKER, "fault_worker"},
                                  {"this run used '" + python_path(), "this run used 'PYTHON"}}));
}

/// One rank of two ends in this way, the other works.
Ending fault(const std::string& kind) { return {kind, {"-n", "2", "FAULT", kind}}; }
/// A worker that is alone ends in this way.
Ending alone(const std::string& name, std::vector<std::string> command) {
  std::vector<std::string> arguments{"-n", "1"};
  arguments.insert(arguments.end(), command.begin(), command.end());
  return {name, arguments};
}
Ending signal(const std::string& name, int number) {
  return {"signal-" + name, {"-n", "2", "FAULT", "signal-" + std::to_string(number)}};
}

const Ending kCodes[] = {fault("exit-1"),
                         fault("exit-3"),
                         fault("exit-126"),
                         fault("exit-255"),
                         {"exit-4-of-all", {"-n", "1", "FAULT", "exit-4", "all"}}};

const Ending kSignals[] = {signal("hup", SIGHUP),   signal("int", SIGINT),   signal("quit", SIGQUIT),
                           signal("ill", SIGILL),   signal("trap", SIGTRAP), signal("abrt", SIGABRT),
                           signal("bus", SIGBUS),   signal("fpe", SIGFPE),   signal("kill", SIGKILL),
                           signal("usr1", SIGUSR1), signal("segv", SIGSEGV), signal("pipe", SIGPIPE),
                           signal("alrm", SIGALRM), signal("term", SIGTERM), signal("xcpu", SIGXCPU),
                           signal("sys", SIGSYS),   signal("real-time", 40)};

const Ending kCompiled[] = {
    fault("throw"),        fault("throw-int"),     fault("throw-lines"),  fault("peer-lost"),      fault("watchdog"),
    fault("cuda-memory"),  fault("nccl"),          fault("assert"),       fault("abort"),          fault("terminate"),
    fault("leave-thread"), fault("pure-virtual"),  fault("null"),         fault("stack-overflow"), fault("stack-smash"),
    fault("double-free"),  fault("beyond-end"),    fault("memory-limit"), fault("file-limit"),     fault("file-size"),
    fault("child-killed"), fault("child-crashed"), fault("leave-child")};

const Ending kOutput[] = {fault("close-output"), fault("escape-sequences"), fault("not-utf8"), fault("progress-bar")};

const Ending kPython[] = {
    alone("python-exception", {"raises.py"}),
    alone("python-chained", {"chained.py"}),
    alone("python-syntax", {"syntax.py"}),
    alone("python-missing-module", {"missing-module.py"}),
    alone("python-missing-library", {"missing-library.py"}),
    alone("python-missing-file", {"missing-file.py"}),
    alone("python-arguments", {"arguments.py"}),
    alone("python-exit-text", {"exit-text.py"}),
    alone("python-interrupt", {"interrupt.py"}),
    alone("python-assertion", {"assertion.py"}),
    alone("python-ignored", {"ignored.py"}),
    alone("python-port", {"port.py"}),
    alone("python-no-space", {"no-space.py"}),
    alone("python-crash", {"crash.py"}),
    alone("python-faulthandler", {"python3", "-X", "faulthandler", "-c", "import os; os.abort()"}),
};

const Ending kShell[] = {
    alone("shell-missing-command", {"./calls-missing.sh"}),
    alone("shell-false", {"false"}),
    alone("shell-says-why", {"sh", "-c", "echo 'no data for this rank' >&2; exit 1"}),
    alone("shell-logs-on", {"sh", "-c", "echo step 1 done >&2; echo step 2 done >&2; exit 1"}),
    alone("shell-child-killed", {"sh", "-c", "sh -c 'kill -s KILL $$'; exit $?"}),
};

const Ending kStart[] = {
    alone("start-not-found", {"./no-such-program"}),
    alone("start-not-on-path", {"no-such-program"}),
    alone("start-no-such-script", {"no-such-script.py"}),
    alone("start-not-executable", {"./not-executable"}),
    alone("start-folder", {"./folder"}),
    alone("start-no-interpreter", {"./no-interpreter"}),
    alone("start-windows-lines", {"./windows-lines"}),
    alone("start-just-text", {"--no-python", "./just-text"}),
    alone("start-empty", {"--no-python", "./empty"}),
    alone("start-link-loop", {"./loop"}),
    alone("start-below-a-file", {"./empty/program"}),
    alone("start-name-too-long", {"./" + std::string(300, 'x')}),
};

INSTANTIATE_TEST_SUITE_P(OfAnExitCode, Verdict, ::testing::ValuesIn(kCodes), NameOfEnding());
INSTANTIATE_TEST_SUITE_P(OfASignal, Verdict, ::testing::ValuesIn(kSignals), NameOfEnding());
INSTANTIATE_TEST_SUITE_P(OfACompiledProgram, Verdict, ::testing::ValuesIn(kCompiled), NameOfEnding());
INSTANTIATE_TEST_SUITE_P(OfStrangeOutput, Verdict, ::testing::ValuesIn(kOutput), NameOfEnding());
INSTANTIATE_TEST_SUITE_P(OfPython, Verdict, ::testing::ValuesIn(kPython), NameOfEnding());
INSTANTIATE_TEST_SUITE_P(OfAShell, Verdict, ::testing::ValuesIn(kShell), NameOfEnding());
INSTANTIATE_TEST_SUITE_P(OfAStart, Verdict, ::testing::ValuesIn(kStart), NameOfEnding());

}  // namespace
}  // namespace lrun::test
