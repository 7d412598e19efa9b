// How options reach lrun: files of settings, variables, the command line.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "support/lrun_process.h"

namespace lrun::test {
namespace {

void write(const std::filesystem::path& path, const std::string& text) { std::ofstream(path) << text; }

/// lrun as started in a folder.
LrunProcess::Options in(const TemporaryFolder& folder, std::map<std::string, std::string> environment = {}) {
  return {.environment = std::move(environment),
          .before_exec = [path = folder.path().string()] { (void)!::chdir(path.c_str()); }};
}

TEST(ConfigFile, OfTheFolderGivesDefaults) {
  const TemporaryFolder folder;
  write(folder.path() / "lrun.toml", "devices = 2\noutput = 'raw'\n");
  LrunProcess lrun({"sh", "-c", "echo $WORLD_SIZE"}, in(folder));
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_EQ(lrun.out(), "2\n2\n");
}

TEST(ConfigFile, ThatIsNamedReplacesTheFoldersAndYieldsToVariableAndFlag) {
  const TemporaryFolder folder;
  write(folder.path() / "lrun.toml", "devices = 2\n");
  write(folder.path() / "big.toml", "devices = 3\nseed = 3\noutput = 'prefix'\n");
  LrunProcess lrun({"--config", "big.toml", "--output=raw", "sh", "-c", "echo $WORLD_SIZE $LRUN_SEED"},
                   in(folder, {{"LRUN_SEED", "4"}}));
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_EQ(lrun.out(), "3 4\n3 4\n3 4\n");
}

TEST(ConfigFile, MistakesAreToldWithTheirLineAndNothingIsStarted) {
  const TemporaryFolder folder;
  write(folder.path() / "lrun.toml", "# ours\n\nstratgy = 'ddp'\n");
  LrunProcess lrun({"sh", "-c", "touch started"}, in(folder));
  EXPECT_EQ(lrun.wait().code, 125);
  EXPECT_EQ(lrun.err(),
            "lrun: error: lrun.toml:3: no setting is called 'stratgy'\nlrun: hint: did you mean 'strategy'?\n");
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "started"));
}

TEST(ConfigFile, OfTheFolderIsNotRepeatedByANestedLrun) {
  const TemporaryFolder folder;
  write(folder.path() / "lrun.toml", "devices = 2\noutput = 'raw'\n");
  LrunProcess lrun({LRUN_PROGRAM, "--output=raw", "sh", "-c", "echo $WORLD_SIZE"}, in(folder));
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_EQ(lrun.out(), "1\n1\n");
}

TEST(PrintConfig, ShowsWhatCountsAndStartsNothing) {
  const TemporaryFolder folder;
  write(folder.path() / "lrun.toml", "devices = 2\nseed = 1\n");
  LrunProcess lrun({"--print-config", "-n", "2", "touch", "started"}, in(folder, {{"LRUN_SEED", "4"}}));
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_NE(lrun.out().find("\nseed = 4                                  # LRUN_SEED\n"), std::string::npos)
      << lrun.out();
  EXPECT_EQ(lrun.out().find("devices = 2                               # lrun.toml:1\n"), 0U) << lrun.out();
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "started"));
}

}  // namespace
}  // namespace lrun::test
