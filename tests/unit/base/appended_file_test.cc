#include "base/appended_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iterator>

#include "support/temporary_folder.h"

namespace lrun {
namespace {

class AppendedFile : public ::testing::Test {
 protected:
  const test::TemporaryFolder folder_;
  const Folder held_ = Folder::open(folder_.path());
  const std::filesystem::path path_ = folder_.path() / "file";
};

TEST_F(AppendedFile, IsMadeAndGrowsAtItsEnd) {
  for (const char letter : {'a', 'b'}) {
    const Fd fd = open_to_append(held_, "file", 0600);
    ASSERT_EQ(::write(fd.get(), &letter, 1), 1);
    EXPECT_EQ(::fcntl(fd.get(), F_GETFL) & (O_NONBLOCK | O_APPEND), O_APPEND) << "as a worker is to inherit it";
  }
  std::ifstream file(path_);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "ab");
}

TEST_F(AppendedFile, IsNoPipeWithOrWithoutAReader) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_FALSE(open_to_append(held_, "file", 0600)) << "and nobody waits";
  EXPECT_EQ(errno, ENXIO);
  const Fd reader(::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  EXPECT_FALSE(open_to_append(held_, "file", 0600));
  EXPECT_EQ(file_refusal_text(errno), "it is not a regular file");
}

TEST_F(AppendedFile, IsNoDevice) {
  EXPECT_FALSE(open_to_append(Folder::open("/dev"), "null", 0600));
  EXPECT_EQ(errno, ENXIO);
}

TEST_F(AppendedFile, IsMadeWithTheFoldersOnItsWay) {
  EXPECT_TRUE(open_to_append(held_, "attempt_0/3/stdout.log", 0600));
  EXPECT_TRUE(std::filesystem::is_regular_file(folder_ / "attempt_0/3/stdout.log"));
}

TEST_F(AppendedFile, IsNoLinkAndInNone) {
  const test::TemporaryFolder elsewhere;
  std::ofstream(elsewhere / "target") << "kept";
  std::filesystem::create_symlink(elsewhere / "target", path_);
  EXPECT_FALSE(open_to_append(held_, "file", 0600));
  EXPECT_EQ(file_refusal_text(errno), "it is a symbolic link");
  std::filesystem::create_symlink(elsewhere.path(), folder_ / "inner");
  EXPECT_FALSE(open_to_append(held_, "inner/target", 0600));
  EXPECT_FALSE(open_to_append(held_, "inner/new", 0600));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(elsewhere.path()), {}), 1);
}

TEST_F(AppendedFile, IsInTheFolderThatWasOpenedWhateverIsInItsPlace) {
  const test::TemporaryFolder elsewhere;
  const test::TemporaryFolder outer;
  std::filesystem::create_directory(outer / "run");
  const Folder run = Folder::open(outer / "run");
  std::filesystem::rename(outer / "run", outer / "moved");
  std::filesystem::create_symlink(elsewhere.path(), outer / "run");
  EXPECT_TRUE(open_to_append(run, "0/stdout.log", 0600));
  EXPECT_TRUE(std::filesystem::is_empty(elsewhere.path()));
  EXPECT_TRUE(std::filesystem::exists(outer / "moved/0/stdout.log"));
}

TEST_F(AppendedFile, IsSetAsideInThePlaceOfAnOlderOne) {
  for (const std::string text : {"old", "new"}) {
    const Fd fd = open_to_append(held_, "0/file", 0600);
    ASSERT_EQ(write_all(fd.get(), text), 0);
    EXPECT_EQ(set_aside(held_, "0/file"), 0);
  }
  std::ifstream older(folder_ / "0/file.1");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(older), {}), "new");
  EXPECT_EQ(set_aside(held_, "0/file"), 0) << "none is there";
}

TEST_F(AppendedFile, SaysWhatTheMachineRefuses) {
  std::ofstream(path_) << "a file";
  EXPECT_FALSE(open_to_append(held_, "file/inner", 0600));
  EXPECT_EQ(errno, ENOTDIR);
}

}  // namespace
}  // namespace lrun
