// The files of a run cannot be read by other users, and links in their place lead no write elsewhere.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "support/lrun_process.h"
#include "support/temporary_folder.h"

namespace lrun::test {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kNobody = 65534;
constexpr uid_t kSomebody = 4321;
/// The folder that a worker's files are in, from its own place.
constexpr const char* kRunOfWorker = "run=$(dirname $(dirname $(dirname $TORCHELASTIC_ERROR_FILE))); ";

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

void expect_owners_alone(const fs::path& folder) {
  struct stat status {};
  ASSERT_EQ(::stat(folder.c_str(), &status), 0) << folder;
  EXPECT_EQ(status.st_mode & 0777U, 0700U) << folder;
}

/// A run whose state folder is refused: it works, keeps nothing, and tells nobody of a file that is not there.
void expect_nothing_kept(const fs::path& state, const fs::path& written_to) {
  LrunProcess lrun({"-n", "1", "sh", "-c", "echo spoken; echo \"[$TORCHELASTIC_ERROR_FILE]\"; exit 3"},
                   {.environment = {{"LRUN_STATE", state.string()}}});
  EXPECT_EQ(lrun.wait().code, 3);
  EXPECT_EQ(lrun.out(), "[0] spoken\n[0] []\n");
  EXPECT_EQ(lrun.err().find("lrun: warning: no logs and no record of this run will be kept: '" + state.string() +
                            "' belongs to another user"),
            0U)
      << lrun.err();
  EXPECT_EQ(lrun.err().find("logs: "), std::string::npos) << lrun.err();
  EXPECT_TRUE(fs::is_empty(written_to));
}

/// The error file that a failing worker is given. The worker's output explains the failure.
std::string told_error_file(std::vector<std::string> arguments, const std::map<std::string, std::string>& environment) {
  const TemporaryFolder folder;
  const fs::path told = folder / "told";
  const std::string program =
      folder.script("program", "#!/bin/sh\nprintf %s \"$TORCHELASTIC_ERROR_FILE\" > " + told.string() +
                                   "\necho 'ValueError: its own words' >&2\nexit 3\n");
  arguments.insert(arguments.end(), {"--nproc-per-node", "1", "--no-python", program});
  LrunProcess lrun(arguments, {.environment = environment});
  EXPECT_NE(lrun.wait().code, 0);
  EXPECT_NE(lrun.err().find("its own words"), std::string::npos) << lrun.err();
  EXPECT_EQ(lrun.err().find("warning"), std::string::npos) << lrun.err();
  EXPECT_TRUE(fs::exists(told)) << lrun.err();
  return text_of(told);
}

TEST(PrivateFolders, NothingIsWrittenIntoAFolderOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a folder of another user";
  const TemporaryFolder theirs;
  ASSERT_EQ(::chown(theirs.path().c_str(), kNobody, kNobody), 0);
  expect_nothing_kept(theirs.path(), theirs.path());
}

TEST(PrivateFolders, NothingIsWrittenThroughALinkOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a link to another user";
  const TemporaryFolder all;
  const TemporaryFolder target;
  ASSERT_EQ(::chmod(all.path().c_str(), 01777), 0);
  fs::create_directory_symlink(target.path(), all / "lrun-0");
  ASSERT_EQ(::lchown((all / "lrun-0").c_str(), kNobody, kNobody), 0);
  expect_nothing_kept(all / "lrun-0", target.path());
}

TEST(PrivateFolders, AreTheOwnersAloneWhateverTheUmask) {
  const TemporaryFolder folder;
  const fs::path state = folder / "state";
  const fs::path logs = folder / "logs";
  for (const int run : {1, 2}) {
    LrunProcess lrun({"-n", "1", "--log-dir", logs, "sh", "-c", "umask; echo spoken"},
                     {.environment = {{"LRUN_STATE", state.string()}}, .before_exec = [] { ::umask(0); }});
    EXPECT_EQ(lrun.wait().code, 0);
    EXPECT_EQ(lrun.err(), "") << "in run " << run;
    EXPECT_EQ(lrun.out(), "[0] 0000\n[0] spoken\n") << "a worker has the user's umask";
  }
  expect_owners_alone(state);
  expect_owners_alone(logs);
  EXPECT_EQ(std::distance(fs::directory_iterator(logs), {}), 2);
  for (const fs::path& place : {state, logs}) {
    for (const auto& run : fs::directory_iterator(place)) expect_owners_alone(run);
  }
}

TEST(PrivateFolders, AreReadByTheirOwnerWhateverTheUmask) {
  const TemporaryFolder folder;
  LrunProcess lrun({"-n", "1", "sh", "-c", "echo spoken; exit 3"}, {.before_exec = [] { ::umask(0777); }});
  EXPECT_EQ(lrun.wait().code, 3);
  EXPECT_EQ(lrun.err().find("warning"), std::string::npos) << lrun.err();
  for (const auto& entry : fs::recursive_directory_iterator(lrun.run_folder())) {
    EXPECT_EQ(entry.status().permissions() & fs::perms(0600), fs::perms(0600)) << entry.path();
  }
}

TEST(PrivateFolders, WhatIsWrittenStaysInTheRunsFolderWhateverIsPutInItsPlace) {
  const TemporaryFolder target;
  LrunProcess lrun({"-n", "1", "sh", "-c",
                    std::string(kRunOfWorker) +
                        "until [ -S $run/control.sock ]; do sleep 0.01; done; mv $run $run.moved; "
                        "ln -s $0 $run; echo spoken; exit 3",
                    target.path()});
  EXPECT_EQ(lrun.wait().code, 3);
  EXPECT_TRUE(fs::is_empty(target.path()));
  const fs::path moved = lrun.run_folder().string() + (fs::is_symlink(lrun.run_folder()) ? ".moved" : "");
  EXPECT_EQ(text_of(moved / "attempt_0" / "0" / "stdout.log"), "spoken\n");
  EXPECT_TRUE(fs::exists(moved / "result.json"));
  EXPECT_FALSE(fs::exists(moved / "control.sock"));
}

TEST(PrivateFolders, AFolderThatLrunMakesIsNoPlantedLink) {
  const TemporaryFolder target;
  LrunProcess lrun({"-n", "1", "--max-restarts", "1", "--restart-backoff", "0s", "sh", "-c",
                    std::string(kRunOfWorker) +
                        "[ -L $run/attempt_1 ] || ln -s $0 $run/attempt_1; echo spoken in $TORCHELASTIC_RESTART_COUNT; "
                        "exit $((3 + TORCHELASTIC_RESTART_COUNT))",
                    target.path()});
  EXPECT_EQ(lrun.wait().code, 4) << lrun.err();
  EXPECT_TRUE(fs::is_empty(target.path()));
  EXPECT_NE(lrun.out().find("spoken in 1"), std::string::npos);
  EXPECT_NE(lrun.err().find("attempt_1/0/stdout.log' cannot be written: Not a directory"), std::string::npos)
      << lrun.err();
}

TEST(PrivateFolders, LinksInTheUsersOwnPathAreFollowed) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "real");
  fs::create_directory_symlink(folder / "real", folder / "link");
  LrunProcess lrun({"-n", "1", "--log-dir", folder / "link" / "logs", "sh", "-c", "echo spoken"},
                   {.environment = {{"LRUN_STATE", (folder / "link").string()}}});
  EXPECT_EQ(lrun.wait().code, 0);
  EXPECT_EQ(lrun.err(), "");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "real"), {}), 2) << "the run's folder and 'logs'";
}

TEST(PrivateFolders, NoFileIsNamedBelowALogFolderThatOthersMayRenameIn) {
  const TemporaryFolder folder;
  const std::vector<std::string> arguments{"--log-dir", folder.path()};
  EXPECT_NE(told_error_file(arguments, {}), "");
  ASSERT_EQ(::chmod(folder.path().c_str(), 0777), 0);
  EXPECT_EQ(told_error_file(arguments, {}), "");
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a folder of another user";
  ASSERT_EQ(::chmod(folder.path().c_str(), 01777), 0);
  EXPECT_NE(told_error_file(arguments, {}), "") << "sticky, as /tmp";
  ASSERT_EQ(::chown(folder.path().c_str(), kSomebody, kSomebody), 0);
  EXPECT_EQ(told_error_file(arguments, {}), "") << "its owner may rename all the same";
}

TEST(PrivateFolders, NoFileIsNamedBelowATemporaryFolderThatOthersMayRenameIn) {
  const TemporaryFolder folder;
  const std::map<std::string, std::string> environment{{"TMPDIR", folder.path()}};
  EXPECT_NE(told_error_file({"--compat=torchrun"}, environment), "");
  ASSERT_EQ(::chmod(folder.path().c_str(), 0777), 0);
  EXPECT_EQ(told_error_file({"--compat=torchrun"}, environment), "");
}

TEST(PrivateFolders, NoFileIsNamedBelowAStateFolderThatAGroupMayRenameIn) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another group";
  const TemporaryFolder folder;
  const std::map<std::string, std::string> environment{{"LRUN_STATE", folder.path()}};
  ASSERT_EQ(::chmod(folder.path().c_str(), 0775), 0);
  EXPECT_NE(told_error_file({}, environment), "");
  ASSERT_EQ(::chown(folder.path().c_str(), 0, kSomebody), 0);
  EXPECT_EQ(told_error_file({}, environment), "");
}

TEST(PrivateFolders, LogsThatSomebodyRemovedBeginAgainWithTheNextAttempt) {
  const TemporaryFolder folder;
  const fs::path logs = folder / "logs";
  LrunProcess lrun({"-n", "1", "-r", "3", "--log-dir", logs, "--max-restarts", "1", "--restart-backoff", "0s", "sh",
                    "-c", "if [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then rm -r $0; exit 3; fi; echo spoken", logs});
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  ASSERT_EQ(std::distance(fs::directory_iterator(logs), {}), 1);
  EXPECT_EQ(text_of(fs::directory_iterator(logs)->path() / "attempt_1" / "0" / "stdout.log"), "spoken\n");
}

TEST(PrivateFolders, AProgramThatCannotBeStartedLeavesNone) {
  const TemporaryFolder folder;
  const std::string program = folder.script("program", "no program for this machine");
  LrunProcess lrun({"-n", "1", "--log-dir", folder / "logs", program});
  EXPECT_EQ(lrun.wait().code, 126) << lrun.err();
  EXPECT_TRUE(fs::is_empty(folder / "logs"));
  EXPECT_TRUE(fs::is_empty(lrun.state()));
}

}  // namespace
}  // namespace lrun::test
