#include "base/folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <system_error>

#include "support/temporary_folder.h"

namespace lrun {
namespace {

constexpr uid_t kNobody = 65534;

mode_t mode_of(const std::filesystem::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 07777U : 0;
}

class FolderTest : public ::testing::Test {
 protected:
  const test::TemporaryFolder temporary_;
  const Folder folder_ = Folder::open(temporary_.path());
};

TEST_F(FolderTest, MakesWhatIsMissingForItsOwnerAloneWhateverTheUmask) {
  for (const mode_t mask : {0U, 0777U}) {
    const mode_t before = ::umask(mask);
    const std::string name = std::to_string(mask);
    EXPECT_TRUE(Folder::make(temporary_ / name / "deep"));
    EXPECT_TRUE(folder_.inner(name + "/inner/most"));
    EXPECT_TRUE(folder_.make_new(name + "-new"));
    EXPECT_EQ(::umask(before), mask);
    for (const std::string& made : {name, name + "/deep", name + "/inner", name + "/inner/most", name + "-new"}) {
      EXPECT_EQ(mode_of(temporary_ / made), 0700U) << made;
    }
  }
}

TEST_F(FolderTest, FollowsTheUsersLinksAndNoneBelow) {
  const test::TemporaryFolder elsewhere;
  std::filesystem::create_directory_symlink(elsewhere.path(), temporary_ / "link");
  EXPECT_TRUE(Folder::make(temporary_ / "link" / "users"));
  EXPECT_FALSE(folder_.inner("link"));
  EXPECT_FALSE(folder_.inner("link/further"));
  EXPECT_THROW((void)folder_.make_new("link"), std::system_error);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(elsewhere.path()), {}), 1);
}

TEST_F(FolderTest, ANewOneWasNotThere) {
  EXPECT_EQ(folder_.make_new("new").path(), temporary_ / "new");
  EXPECT_THROW((void)folder_.make_new("new"), std::system_error);
  EXPECT_TRUE(folder_.inner("new")) << "it is ours";
}

TEST_F(FolderTest, IsNotWhatAnotherUserMadeInItsPlace) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a folder of another user";
  ASSERT_TRUE(folder_.make_new("theirs"));
  ASSERT_EQ(::chown((temporary_ / "theirs").c_str(), kNobody, kNobody), 0);
  EXPECT_FALSE(folder_.inner("theirs"));
  EXPECT_EQ(errno, EPERM);
}

TEST_F(FolderTest, MayBelongToTheOneToWhomAFileSystemGivesAll) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a folder of another user";
  ASSERT_EQ(::chown(temporary_.path().c_str(), kNobody, kNobody), 0);
  ASSERT_TRUE(folder_.make_new("mapped"));
  ASSERT_EQ(::chown((temporary_ / "mapped").c_str(), kNobody, kNobody), 0);
  EXPECT_TRUE(folder_.inner("mapped"));
}

TEST_F(FolderTest, StaysTheSameWhateverIsInItsPlace) {
  const Folder moved = folder_.make_new("first");
  std::filesystem::rename(temporary_ / "first", temporary_ / "second");
  std::filesystem::create_directory(temporary_ / "first");
  ASSERT_TRUE(moved.inner("inner"));
  EXPECT_TRUE(std::filesystem::exists(temporary_ / "second" / "inner"));
  EXPECT_TRUE(std::filesystem::exists(moved.by_descriptor() / "inner"));
}

TEST_F(FolderTest, KnowsThatItWasRemoved) {
  const Folder made = folder_.make_new("short-lived");
  EXPECT_FALSE(made.is_removed());
  std::filesystem::remove(temporary_ / "short-lived");
  EXPECT_TRUE(made.is_removed());
  EXPECT_FALSE(made.inner("inner"));
}

TEST_F(FolderTest, SaysWhichFolderCannotBeMade) {
  std::ofstream(temporary_ / "file") << "a file";
  try {
    (void)Folder::make(temporary_ / "file" / "inner");
    FAIL() << "it was made";
  } catch (const std::system_error& error) {
    EXPECT_NE(std::string(error.what()).find("cannot make the folder '" + (temporary_ / "file/inner").string() + "'"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace lrun
