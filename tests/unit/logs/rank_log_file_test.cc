#include "logs/rank_log_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <utility>

#include "support/log_test_support.h"

namespace lrun::launcher {
namespace {

namespace fs = std::filesystem;

TEST(RankLogFile, IsMadeWithItsFolderAtTheFirstByte) {
  const TemporaryFolder folder;
  const Folder held = Folder::open(folder.path());
  RankLogFile file;
  EXPECT_EQ(file.open_at(held, "0/stdout.log"), 0);
  EXPECT_FALSE(fs::exists(folder.path() / "0")) << "a silent rank costs no file";
  EXPECT_FALSE(file.made());
  EXPECT_EQ(file.write("hello"), 0);
  EXPECT_EQ(content_of(folder.path() / "0" / "stdout.log"), "hello");
  EXPECT_TRUE(file.made());
}

TEST(RankLogFile, KeepsWhatCameBeforeItsName) {
  const TemporaryFolder folder;
  const Folder held = Folder::open(folder.path());
  RankLogFile file;
  EXPECT_EQ(file.write("early "), 0);
  EXPECT_EQ(file.open_at(held, "out.log"), 0);
  EXPECT_EQ(file.write("late"), 0);
  EXPECT_EQ(content_of(folder.path() / "out.log"), "early late");
}

TEST(RankLogFile, SaysThatTheDiskIsFullAndGoesOn) {
  const TemporaryFolder folder;
  const FullDisk full;
  const Folder held = Folder::open(folder.path());
  RankLogFile file;
  EXPECT_EQ(file.open_at(held, "out.log"), 0);
  EXPECT_EQ(file.write("lost"), EFBIG);
  EXPECT_EQ(file.write("lost too"), EFBIG);
}

TEST(RankLogFile, IsNoPipeAndNobodyWaitsForOne) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "out.log";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const Folder held = Folder::open(folder.path());
  RankLogFile file;
  EXPECT_EQ(file.open_at(held, "out.log"), 0);
  EXPECT_EQ(file.write("nobody reads this"), ENXIO);
  fs::remove(path);
  EXPECT_EQ(file.write("after\n"), 0);
  EXPECT_EQ(content_of(path), "\n[lrun: 17 bytes are missing here: it is not a regular file]\nafter\n");
}

TEST(RankLogFile, NotesInTheFileWhatIsMissing) {
  const TemporaryFolder folder;
  const fs::path place = folder.path() / "0" / "out.log";
  fs::create_symlink("/nonexistent/folder", folder.path() / "0");
  const Folder held = Folder::open(folder.path());
  RankLogFile file;
  EXPECT_EQ(file.open_at(held, "0/out.log"), 0);
  EXPECT_NE(file.write("12345"), 0);
  fs::remove(folder.path() / "0");
  EXPECT_EQ(file.write("after\n"), 0);
  EXPECT_TRUE(content_of(place).starts_with("\n[lrun: 5 bytes are missing here: ")) << content_of(place);
  EXPECT_TRUE(content_of(place).ends_with("]\nafter\n")) << content_of(place);
}

/// The content of the older file and of the current one.
std::pair<std::string, std::string> both(const fs::path& path) {
  return {content_of(fs::path(path).concat(".1")), content_of(path)};
}

TEST(RankLogFile, BeginsAnewAtTheEndOfALine) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "out.log";
  const Folder held = Folder::open(folder.path());
  RankLogFile file(10);
  EXPECT_EQ(file.open_at(held, "out.log"), 0);
  EXPECT_EQ(file.write("1234\n6789\n"), 0);
  EXPECT_EQ(both(path), std::pair(std::string(), std::string("1234\n6789\n")));
  EXPECT_EQ(file.write("abc\n"), 0);
  EXPECT_EQ(both(path), std::pair(std::string("1234\n6789\n"), std::string("abc\n")));
  EXPECT_EQ(file.write("defgh\nxyz\n"), 0);
  EXPECT_EQ(both(path), std::pair(std::string("abc\ndefgh\n"), std::string("xyz\n"))) << "the oldest is gone";
}

TEST(RankLogFile, KeepsALineWholeThatCameInParts) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "out.log";
  const Folder held = Folder::open(folder.path());
  RankLogFile file(10);
  EXPECT_EQ(file.open_at(held, "out.log"), 0);
  for (const char* const part : {"1234\n678", "9abc", "def\nnext\n"}) EXPECT_EQ(file.write(part), 0);
  EXPECT_EQ(both(path), std::pair(std::string("1234\n6789abcdef\n"), std::string("next\n")));
}

TEST(RankLogFile, CutsALineThatIsLongerThanAFile) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "out.log";
  const Folder held = Folder::open(folder.path());
  RankLogFile file(10);
  EXPECT_EQ(file.open_at(held, "out.log"), 0);
  EXPECT_EQ(file.write(std::string(25, 'x') + "\n"), 0);
  const auto [older, current] = both(path);
  EXPECT_EQ(older, std::string(10, 'x'));
  EXPECT_EQ(current, std::string(5, 'x') + "\n");
}

TEST(RankLogFile, BeginsAnewAlsoWhenBothNamesAreOneFile) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "out.log";
  const Folder held = Folder::open(folder.path());
  RankLogFile file(10);
  EXPECT_EQ(file.open_at(held, "out.log"), 0);
  EXPECT_EQ(file.write("1234\n6789\n"), 0);
  fs::create_hard_link(path, fs::path(path).concat(".1"));
  EXPECT_EQ(file.write("abc\n"), 0);
  EXPECT_EQ(both(path), std::pair(std::string("1234\n6789\n"), std::string("abc\n")));
}

TEST(RankLogFile, CannotBeginAnewWhereAFolderIsInTheWay) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "out.log";
  fs::create_directory(fs::path(path).concat(".1"));
  const Folder held = Folder::open(folder.path());
  RankLogFile file(10);
  EXPECT_EQ(file.open_at(held, "out.log"), 0);
  EXPECT_EQ(file.write("1234\n6789\n"), 0);
  EXPECT_EQ(file.write("abc\n"), EISDIR);
  fs::remove(fs::path(path).concat(".1"));
  EXPECT_EQ(file.write("next\n"), 0);
}

TEST(RankLogFile, NeverGrowsFarBeyondItsLimit) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "out.log";
  const Folder held = Folder::open(folder.path());
  RankLogFile file(100'000);
  EXPECT_EQ(file.open_at(held, "out.log"), 0);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(file.write(std::string(10'000, 'x')), 0);
    EXPECT_LE(fs::file_size(path), 165'536U);
  }
}

}  // namespace
}  // namespace lrun::launcher
