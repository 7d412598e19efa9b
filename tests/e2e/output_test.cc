#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <sstream>

#include "support/lrun_process.h"
#include "support/with_more_time.h"

namespace lrun::test {
namespace {

using Lines = std::vector<std::string>;

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Lines sorted_lines(const std::string& text) {
  std::istringstream stream(text);
  Lines lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  return lines;
}

/// The names of all files below `folder`, relative to it.
Lines files_below(const std::filesystem::path& folder) {
  Lines files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path().lexically_relative(folder).string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

constexpr const char* kSpeak = "echo out-$RANK; echo err-$RANK >&2";

TEST(Output, ARedirectedStreamIsInItsFileOnly) {
  LrunProcess lrun({"-n", "2", "-r", "0:1,1:2", "sh", "-c", kSpeak});
  EXPECT_EQ(lrun.wait().code, 0);
  EXPECT_EQ(lrun.out(), "out-1\n") << "what is not redirected is lrun's own stdout, without prefix";
  EXPECT_EQ(lrun.err(), "err-0\n");
  const auto logs = lrun.run_folder() / "attempt_0";
  EXPECT_EQ(files_below(logs), (Lines{"0/stdout.log", "1/stderr.log"}));
  EXPECT_EQ(contents(logs / "0" / "stdout.log"), "out-0\n");
}

TEST(Output, AWorkerWritesToARedirectsFileItself) {
  LrunProcess lrun({"-n", "1", "-r", "3", "readlink", "/proc/self/fd/1"});
  lrun.wait();
  const auto log = lrun.run_folder() / "attempt_0" / "0" / "stdout.log";
  EXPECT_EQ(contents(log), log.string() + "\n");
}

void fill_stdout() {
  const int full = ::open("/dev/full", O_WRONLY);
  ::dup2(full, STDOUT_FILENO);
  ::close(full);
}

TEST(Output, AFullStdoutIsOneWarningAndTheWorkersEndCounts) {
  LrunProcess lrun({"-n", "2", "sh", "-c", "echo one; echo two"}, {.before_exec = fill_stdout});
  EXPECT_EQ(lrun.wait().code, 0);
  EXPECT_EQ(lrun.err(),
            "lrun: warning: standard output cannot be written: No space left on device; the log files have what it "
            "lacks\n");
  LrunProcess without({"-n", "1", "--log-dir", "/dev/null", "sh", "-c", "echo one; exit 3"},
                      {.before_exec = fill_stdout});
  EXPECT_EQ(without.wait().code, 3);
  EXPECT_NE(without.err().find("standard output cannot be written: No space left on device; lines are lost\n"),
            std::string::npos)
      << without.err();
}

TEST(Output, AnAnswerThatCannotBeWrittenIsAnError) {
  for (const Lines& words : {Lines{"--help"}, Lines{"--version"}, Lines{"--print-config"}, Lines{"--dry-run", "true"},
                             Lines{"status"}, Lines{"doctor", "--verbose"}}) {
    LrunProcess lrun(words, {.before_exec = fill_stdout});
    EXPECT_EQ(lrun.wait().code, 125) << words.front();
    EXPECT_EQ(lrun.err(), "lrun: error: cannot write to standard output: No space left on device\n") << words.front();
  }
}

TEST(Output, APipeInTheLogFilesPlaceIsAWarning) {
  LrunProcess lrun({"-n", "1", "--timeout", "50s", "sh", "-c",
                    "until mkfifo $(dirname $TORCHELASTIC_ERROR_FILE)/stdout.log; do sleep 0.01; done 2>/dev/null\n"
                    "echo spoken"});
  EXPECT_EQ(lrun.wait().code, 0);
  EXPECT_EQ(lrun.out(), "[0] spoken\n");
  EXPECT_NE(lrun.err().find("stdout.log' cannot be written: it is not a regular file"), std::string::npos)
      << lrun.err();
}

TEST(Output, TheVerdictShowsTheLastLinesOfARedirectedStream) {
  LrunProcess lrun({"-n", "2", "-r", "3", "sh", "-c", "echo last words >&2; [ $RANK = 0 ] || exit 3; sleep 1000"});
  EXPECT_EQ(lrun.wait().code, 3);
  EXPECT_NE(lrun.err().find("last words"), std::string::npos) << lrun.err();
}

TEST(Output, ATeedStreamHasTorchrunsPrefix) {
  LrunProcess lrun({"-n", "2", "-t", "1", "--role", "trainer", "sh", "-c", kSpeak});
  lrun.wait();
  EXPECT_EQ(sorted_lines(lrun.out()), (Lines{"[trainer0]:out-0", "[trainer1]:out-1"}));
  EXPECT_EQ(sorted_lines(lrun.err()), (Lines{"err-0", "err-1"}));
  EXPECT_EQ(contents(lrun.run_folder() / "attempt_0" / "1" / "stdout.log"), "out-1\n");
}

TEST(Output, AFilterCopiesLinesWithTheirPrefix) {
  LrunProcess lrun({"-n", "1", "--duplicate-stdout-filters", "apple,pear", "printf", "apple pie\\nplum\\na pear"});
  lrun.wait();
  EXPECT_EQ(contents(lrun.run_folder() / "attempt_0" / "filtered_stdout.log"), "[0] apple pie\n[0] a pear\n");
}

TEST(Output, TheConsoleShowsWhatItsModeSays) {
  for (const auto& [mode, expected] : std::vector<std::pair<std::string, Lines>>{
           {"prefix", {"[0] out-0", "[1] out-1"}}, {"raw", {"out-0", "out-1"}}, {"rank0", {"out-0"}}, {"quiet", {}}}) {
    LrunProcess lrun({"-n", "2", "--output", mode, "sh", "-c", kSpeak});
    EXPECT_EQ(lrun.wait().code, 0);
    EXPECT_EQ(sorted_lines(lrun.out()), expected) << mode;
    EXPECT_EQ(contents(lrun.run_folder() / "attempt_0" / "1" / "stdout.log"), "out-1\n") << mode;
  }
}

/// Copies of a quarter of a second are one line in a pipe. Ranks that start far apart are no fault of that.
TEST(Output, FoldsWhatAllRanksSay) {
  with_more_time([](int factor) -> std::string {
    LrunProcess lrun(
        {"-n", "4", "--output", "fold", "sh", "-c", "echo warning; sleep $0; echo mine $RANK", std::to_string(factor)});
    EXPECT_EQ(lrun.wait().code, 0);
    const Lines lines = sorted_lines(lrun.out());
    const auto warnings =
        std::count_if(lines.begin(), lines.end(), [](const std::string& line) { return line.ends_with("] warning"); });
    EXPECT_EQ(lines.size() - static_cast<std::size_t>(warnings), 4U) << lrun.out();
    EXPECT_EQ(contents(lrun.run_folder() / "attempt_0" / "2" / "stdout.log"), "warning\nmine 2\n");
    return warnings == 1 ? "" : "not folded into one line: " + lrun.out();
  });
}

TEST(Output, RotatesLogFiles) {
  LrunProcess lrun({"-n", "1", "--log-max-bytes", "4K", "-r", "1", "seq", "2000"});
  EXPECT_EQ(lrun.wait().code, 0);
  const auto logs = lrun.run_folder() / "attempt_0" / "0";
  EXPECT_EQ(files_below(logs), (Lines{"stdout.log", "stdout.log.1"}));
  std::string expected;
  for (int i = 1; i <= 2000; ++i) expected += std::to_string(i) + "\n";
  const std::string kept = contents(logs / "stdout.log.1") + contents(logs / "stdout.log");
  EXPECT_TRUE(expected.ends_with(kept)) << kept;
  EXPECT_GE(kept.size(), 4000U);
  EXPECT_LE(kept.size(), 8192U);
}

TEST(Output, WorkersSeeATerminalWhenTheyAskForOne) {
  LrunProcess lrun({"-n", "2", "--pty", "sh", "-c", "[ -t 1 ] && echo yes; [ -t 2 ] && echo err >&2; stty size <&1"});
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_EQ(sorted_lines(lrun.out()), (Lines{"[0] 24 76", "[0] yes", "[1] 24 76", "[1] yes"}));
  EXPECT_EQ(sorted_lines(lrun.err()), (Lines{"[0] err", "[1] err"}));
  EXPECT_EQ(contents(lrun.run_folder() / "attempt_0" / "1" / "stdout.log"), "yes\n24 76\n");
}

TEST(Output, HasColourOnlyOnATerminalThatKnowsIt) {
  const auto shown = [](std::map<std::string, std::string> environment) {
    LrunProcess lrun({"-n", "1", "echo", "hi"}, {.environment = std::move(environment), .terminal = true});
    EXPECT_EQ(lrun.wait().code, 0);
    return lrun.err();
  };
  EXPECT_NE(shown({{"TERM", "xterm"}, {"NO_COLOR", ""}}).find("\x1b["), std::string::npos) << "empty is not set";
  EXPECT_EQ(shown({{"TERM", "xterm"}, {"NO_COLOR", "1"}}), "[0] hi\r\n");
  EXPECT_EQ(shown({{"TERM", "dumb"}, {"NO_COLOR", ""}}), "[0] hi\r\n");
}

TEST(Output, RankZeroReadsThePersonsAnswer) {
  LrunProcess lrun({"-n", "2", "--stdin", "sh", "-c", "[ $RANK = 0 ] && printf 'name? '; read name; echo got $name"},
                   {.environment = {{"NO_COLOR", "1"}}, .terminal = true});
  ASSERT_TRUE(lrun.wait_for("name? ")) << "a question is shown before its line has ended";
  lrun.type("Ada\n");
  EXPECT_EQ(lrun.wait().code, 0);
  EXPECT_NE(lrun.err().find("got Ada"), std::string::npos) << lrun.err();
  EXPECT_NE(lrun.err().find("got\r\n"), std::string::npos) << "rank 1 reads nothing\n" << lrun.err();
}

/// Gives the terminal to another process group, as a shell does that starts lrun in the background. The group ends with
/// the session.
void be_in_background() {
  Pipe ready = make_pipe();
  const pid_t shell = ::fork();
  if (shell == 0) {
    ::setpgid(0, 0);
    ready.write.reset();
    for (;;) ::pause();
  }
  ready.write.reset();
  char none = 0;
  (void)!::read(ready.read.get(), &none, 1);
  ::signal(SIGTTOU, SIG_IGN);
  ::tcsetpgrp(STDIN_FILENO, shell);
  ::signal(SIGTTOU, SIG_DFL);
}

TEST(Output, RankZeroNeverTakesWhatIsTypedToAShell) {
  LrunProcess lrun({"-n", "1", "--stdin", "cat"},
                   {.environment = {{"NO_COLOR", "1"}}, .terminal = true, .before_exec = be_in_background});
  EXPECT_EQ(lrun.wait().code, 125);
  EXPECT_NE(lrun.err().find("lrun: error: '--stdin' would read a terminal that another job uses"), std::string::npos)
      << lrun.err();
}

/// Stays as the shell of the terminal and lets a child of it go on to become lrun: its job in the foreground, which it
/// continues in the background when it has stopped, and in the foreground when it has stopped again.
void have_a_shell() {
  const pid_t job = ::fork();
  if (job == 0) {
    ::setpgid(0, 0);
    while (::tcgetpgrp(STDIN_FILENO) != ::getpgrp()) ::usleep(1000);
    return;
  }
  ::signal(SIGTTOU, SIG_IGN);
  ::setpgid(job, job);
  ::tcsetpgrp(STDIN_FILENO, job);
  int status = 0;
  ::waitpid(job, &status, WUNTRACED);
  ::tcsetpgrp(STDIN_FILENO, ::getpgrp());
  ::kill(-job, SIGCONT);
  ::waitpid(job, &status, WUNTRACED);
  const bool reads = WIFSTOPPED(status) && WSTOPSIG(status) == SIGTTIN;
  ::tcsetpgrp(STDIN_FILENO, job);
  ::kill(-job, SIGCONT);
  ::dprintf(STDOUT_FILENO, "%s; fg\n", reads ? "tty input" : "not stopped");
  ::waitpid(job, &status, 0);
  ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 99);
}

void have_a_shell_that_ignores_reads() {
  ::signal(SIGTTIN, SIG_IGN);
  have_a_shell();
}

void expect_a_stop_in_the_background(void (*shell)()) {
  LrunProcess lrun({"-n", "2", "--stdin", "sh", "-c", "echo ready; read name; echo got $name"},
                   {.environment = {{"NO_COLOR", "1"}}, .terminal = true, .before_exec = shell});
  ASSERT_TRUE(lrun.wait_for("[0] ready"));
  lrun.type("\x1a");
  ASSERT_TRUE(lrun.wait_for("; fg")) << lrun.err();
  EXPECT_NE(lrun.err().find("tty input; fg"), std::string::npos) << lrun.err();
  EXPECT_NE(lrun.err().find("lrun: note: stopped: with '--stdin' rank 0 reads the terminal, which another job uses; "
                            "'fg' continues it"),
            std::string::npos)
      << lrun.err();
  lrun.type("Ada\n");
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_NE(lrun.err().find("[0] got Ada"), std::string::npos) << lrun.err();
}

TEST(Output, ARunThatReadsTheTerminalStopsInTheBackground) { expect_a_stop_in_the_background(have_a_shell); }

TEST(Output, ARunThatReadsTheTerminalStopsAlsoWhereThatSignalWasIgnored) {
  expect_a_stop_in_the_background(have_a_shell_that_ignores_reads);
}

/// What stands on a terminal after these bytes, row by row. It knows what lrun uses: '\r', '\n', and ESC [ with A and B
/// (up, down), K (wipes the row's rest) and m.
Lines rows_after(const std::string& bytes) {
  Lines rows{""};
  std::size_t at = 0;
  std::size_t column = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == '\n') {
      if (++at == rows.size()) rows.emplace_back();
    } else if (bytes[i] == '\r') {
      column = 0;
    } else if (bytes[i] == '\x1b') {
      const std::size_t number = static_cast<std::size_t>(std::atoi(bytes.c_str() + i + 2));
      i = std::min(bytes.find_first_of("ABKm", i), bytes.size() - 1);
      if (bytes[i] == 'A') at -= std::min(number, at);
      if (bytes[i] == 'B') at = std::min(at + number, rows.size() - 1);
      if (bytes[i] == 'K') rows[at].resize(std::min(rows[at].size(), number == 2 ? 0 : column));
    } else {
      rows[at].resize(std::max(rows[at].size(), column + 1), ' ');
      rows[at][column++] = bytes[i];
    }
  }
  return rows;
}

class FinishedBar : public ::testing::TestWithParam<Lines> {};

TEST_P(FinishedBar, StaysOnATerminalWhenItsNewlineComesLater) {
  const TemporaryFolder folder;
  const auto go = folder.path() / "go";
  Lines line = GetParam();
  line.insert(line.end(), {"-n", "2", "sh", "-c",
                           "printf '\\rtrain 10%% loss=0.90'; printf '\\rtrain 100%% loss=0.10'; while [ ! -e " +
                               go.string() + " ]; do sleep 0.01; done; printf '\\n'"});
  LrunProcess lrun(line, {.terminal = true});
  ASSERT_TRUE(lrun.wait_for("train 100%")) << lrun.err();
  std::ofstream(go).close();
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  Lines rows = rows_after(lrun.err());
  std::sort(rows.begin(), rows.end());
  const Lines folded{"", "[0,1] train 100% loss=0.10"};
  EXPECT_TRUE(rows == folded || rows == (Lines{"", "[0] train 100% loss=0.10", "[1] train 100% loss=0.10"}))
      << lrun.err();
}

INSTANTIATE_TEST_SUITE_P(Output, FinishedBar, ::testing::Values(Lines{}, Lines{"--pty"}, Lines{"--output", "fold"}));

TEST(Output, AStateFolderThatCannotBeMadeIsOneWarning) {
  LrunProcess lrun({"-n", "2", "echo", "hi"}, {.environment = {{"LRUN_STATE", "/proc/none"}}});
  EXPECT_EQ(lrun.wait().code, 0);
  EXPECT_EQ(
      lrun.err(),
      "lrun: warning: no logs and no record of this run will be kept: cannot make the folder '/proc/none': No such "
      "file or directory; LRUN_STATE names another place\n");
}

TEST(Output, ATemporaryFolderThatIsNotThereIsReplaced) {
  LrunProcess lrun({"--compat=torchrun", "--no-python", "--nproc-per-node", "1", "-t", "3", "echo", "hi"},
                   {.environment = {{"TMPDIR", "/none"}, {"OMP_NUM_THREADS", "1"}}});
  EXPECT_EQ(lrun.wait().code, 0);
  EXPECT_EQ(lrun.err(), "");
  EXPECT_FALSE(std::filesystem::exists("/none"));
}

TEST(Output, AStoppedTerminalBlocksNoRank) {
  const TemporaryFolder folder;
  const auto go = folder.path() / "go";
  LrunProcess lrun({"-n", "2", "sh", "-c",
                    "echo ready; while [ ! -e " + go.string() + " ]; do sleep 0.01; done; seq 300000; echo done >&2"},
                   {.environment = {{"NO_COLOR", "1"}}, .terminal = true});
  ASSERT_TRUE(lrun.wait_for("[0] ready") && lrun.wait_for("[1] ready"));
  lrun.type("\x13");  // Ctrl-S
  std::ofstream(go).close();
  const auto logs = lrun.run_folder() / "attempt_0";
  for (const char* const rank : {"0", "1"}) {
    ASSERT_TRUE(eventually([&] { return contents(logs / rank / "stderr.log") == "done\n"; })) << "rank " << rank;
  }
  lrun.type("\x11");  // Ctrl-Q
  EXPECT_EQ(lrun.wait().code, 0);
  EXPECT_NE(lrun.err().find(" lines left out here, all in '" + logs.string() + "'"), std::string::npos);
  std::string expected = "ready\n";
  for (int i = 1; i <= 300'000; ++i) expected += std::to_string(i) + "\n";
  EXPECT_TRUE(contents(logs / "1" / "stdout.log") == expected) << "the file lacks something";
}

TEST(Output, TorchrunsTemporaryFolderGoesWhenNobodyLeftAFile) {
  const TemporaryFolder folder;
  const LrunProcess::Options options{.environment = {{"TMPDIR", folder.path().string()}}};
  LrunProcess silent({"--compat=torchrun", "--no-python", "sh", "-c", "sleep 0.05"}, options);
  EXPECT_EQ(silent.wait().code, 0);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));

  LrunProcess lrun({"--compat=torchrun", "--rdzv-id=a/b", "-r", "1", "--no-python", "echo", "hello"}, options);
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  const Lines files = files_below(folder.path());
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(files.front().find("torchelastic_"), 0U) << files.front();
  EXPECT_NE(files.front().find("/a_b_"), std::string::npos) << files.front();
  EXPECT_NE(files.front().find("/attempt_0/0/stdout.log"), std::string::npos) << files.front();
}

TEST(Output, TorchrunsFolderBelowLogDirStaysWithoutAFile) {
  const TemporaryFolder folder;
  LrunProcess lrun({"--compat=torchrun", "--log-dir", folder.path().string(), "--no-python", "echo", "hello"});
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  std::vector<std::filesystem::path> runs;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) runs.push_back(entry.path());
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_TRUE(std::filesystem::is_directory(runs.front() / "attempt_0" / "0")) << runs.front();
}

}  // namespace
}  // namespace lrun::test
