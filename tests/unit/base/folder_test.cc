#include "base/folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <system_error>

#include "support/temporary_folder.h"

namespace lrun {
namespace {

using ::testing::HasSubstr;

constexpr uid_t kNobody = 65534;
constexpr uid_t kSomebody = 4321;

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

TEST_F(FolderTest, MayBeReplacedWhereEverybodyMayRenameOnItsPath) {
  const Folder folder = Folder::make(temporary_ / "open" / "ours" / "folder");
  EXPECT_FALSE(folder.may_be_replaced());
  ASSERT_EQ(::chmod((temporary_ / "open").c_str(), 0777), 0);
  EXPECT_TRUE(folder.may_be_replaced());
  ASSERT_EQ(::chmod((temporary_ / "open").c_str(), 01777), 0);
  EXPECT_FALSE(folder.may_be_replaced()) << "sticky, as /tmp";
}

TEST_F(FolderTest, MayBeReplacedWhereALinkOnItsPathMayBe) {
  const std::filesystem::path open = temporary_ / "open";
  (void)Folder::make(open);
  (void)Folder::make(temporary_ / "safe" / "folder");
  std::filesystem::create_directory_symlink("../safe", open / "link");
  std::filesystem::create_directory_symlink(open / "link", temporary_ / "over-another");
  const Folder folder = Folder::open(temporary_ / "over-another" / "folder");
  EXPECT_FALSE(folder.may_be_replaced());
  ASSERT_EQ(::chmod(open.c_str(), 0777), 0);
  EXPECT_TRUE(folder.may_be_replaced());
  EXPECT_FALSE(Folder::open(temporary_ / "safe" / "folder").may_be_replaced());
  ASSERT_EQ(::chmod(open.c_str(), 01777), 0);
  EXPECT_FALSE(folder.may_be_replaced());
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a link to another user";
  ASSERT_EQ(::lchown((open / "link").c_str(), kSomebody, 0), 0);
  EXPECT_TRUE(folder.may_be_replaced());
}

TEST_F(FolderTest, MayBeReplacedBelowAFolderOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a folder of another user";
  const Folder folder = Folder::make(temporary_ / "theirs" / "ours");
  const std::string theirs = temporary_ / "theirs";
  ASSERT_EQ(::chown(theirs.c_str(), kSomebody, kSomebody), 0);
  for (const mode_t mode : {0755U, 01777U}) {
    ASSERT_EQ(::chmod(theirs.c_str(), mode), 0);
    EXPECT_TRUE(folder.may_be_replaced()) << "its owner may rename in a folder of mode " << std::oct << mode;
  }
  ASSERT_EQ(::chown(theirs.c_str(), kNobody, kNobody), 0);
  EXPECT_FALSE(folder.may_be_replaced()) << "in a user namespace, root's folders are nobody's";
}

TEST_F(FolderTest, MayBeReplacedWhereAGroupOfOthersMayRename) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another group";
  const Folder folder = Folder::make(temporary_ / "shared" / "ours");
  const std::string shared = temporary_ / "shared";
  ASSERT_EQ(::chmod(shared.c_str(), 0775), 0);
  EXPECT_FALSE(folder.may_be_replaced()) << "the group is ours";
  ASSERT_EQ(::chown(shared.c_str(), 0, kSomebody), 0);
  ASSERT_EQ(::chmod(shared.c_str(), 0775), 0);
  EXPECT_TRUE(folder.may_be_replaced());
  ASSERT_EQ(::chmod(shared.c_str(), 0755), 0);
  EXPECT_FALSE(folder.may_be_replaced()) << "the group may not write";
}

TEST_F(FolderTest, MayBeReplacedWhereItWas) {
  const Folder folder = folder_.make_new("first");
  std::filesystem::rename(temporary_ / "first", temporary_ / "second");
  EXPECT_TRUE(folder.may_be_replaced()) << "nothing is in its place";
  std::filesystem::create_directory(temporary_ / "first");
  EXPECT_TRUE(folder.may_be_replaced());
}

TEST_F(FolderTest, SaysWhichFolderCannotBeMade) {
  std::ofstream(temporary_ / "file") << "a file";
  try {
    (void)Folder::make(temporary_ / "file" / "inner");
    FAIL() << "it was made";
  } catch (const std::system_error& error) {
    EXPECT_THAT(std::string(error.what()),
                HasSubstr("cannot make the folder '" + (temporary_ / "file/inner").string() + "'"))
        << error.what();
  }
}

}  // namespace
}  // namespace lrun
