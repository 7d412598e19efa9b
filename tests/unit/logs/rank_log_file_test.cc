#include "logs/rank_log_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "unit/logs/log_test_support.h"

namespace lrun {
namespace {

namespace fs = std::filesystem;

TEST(RankLogFile, IsMadeWithItsFolderAtTheFirstByte) {
  const TemporaryFolder folder;
  RankLogFile file;
  EXPECT_EQ(file.open_at(folder.path() / "0" / "stdout.log"), 0);
  EXPECT_FALSE(fs::exists(folder.path() / "0")) << "a silent rank costs no file";
  EXPECT_FALSE(file.made());
  EXPECT_EQ(file.write("hello"), 0);
  EXPECT_EQ(content_of(folder.path() / "0" / "stdout.log"), "hello");
  EXPECT_TRUE(file.made());
}

TEST(RankLogFile, KeepsWhatCameBeforeItsName) {
  const TemporaryFolder folder;
  RankLogFile file;
  EXPECT_EQ(file.write("early "), 0);
  EXPECT_EQ(file.open_at(folder.path() / "out.log"), 0);
  EXPECT_EQ(file.write("late"), 0);
  EXPECT_EQ(content_of(folder.path() / "out.log"), "early late");
}

TEST(RankLogFile, SaysThatTheDiskIsFullAndGoesOn) {
  const TemporaryFolder folder;
  fs::create_symlink("/dev/full", folder.path() / "out.log");
  RankLogFile file;
  EXPECT_EQ(file.open_at(folder.path() / "out.log"), 0);
  EXPECT_EQ(file.write("lost"), ENOSPC);
  EXPECT_EQ(file.write("lost too"), ENOSPC);
}

TEST(RankLogFile, NotesInTheFileWhatIsMissing) {
  const TemporaryFolder folder;
  const fs::path place = folder.path() / "0" / "out.log";
  fs::create_symlink("/nonexistent/folder", folder.path() / "0");
  RankLogFile file;
  EXPECT_EQ(file.open_at(place), 0);
  EXPECT_NE(file.write("12345"), 0);
  fs::remove(folder.path() / "0");
  EXPECT_EQ(file.write("after\n"), 0);
  EXPECT_TRUE(content_of(place).starts_with("\n[lrun: 5 bytes are missing here: ")) << content_of(place);
  EXPECT_TRUE(content_of(place).ends_with("]\nafter\n")) << content_of(place);
}

}  // namespace
}  // namespace lrun
