#include "process/memory_folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "support/temporary_folder.h"

namespace lrun {
namespace {

namespace fs = std::filesystem;

/// The effective user where root runs the test, who may remove what others may not.
class OrdinaryUser {
 public:
  OrdinaryUser() : is_one_(::geteuid() != 0 || ::seteuid(12345) == 0) {}
  OrdinaryUser(const OrdinaryUser&) = delete;
  OrdinaryUser& operator=(const OrdinaryUser&) = delete;
  ~OrdinaryUser() { (void)!::seteuid(::getuid()); }
  [[nodiscard]] bool is_one() const { return is_one_; }

 private:
  bool is_one_;
};

class MemoryFolderTest : public ::testing::Test {
 protected:
  [[nodiscard]] MemoryFolder make(const std::string& name) const {
    return MemoryFolder::make(name, parent_.path().string());
  }
  [[nodiscard]] fs::path place(const std::string& name) const { return parent_.path() / name; }

  /// As a run leaves it that was killed: nobody holds its lock.
  [[nodiscard]] fs::path abandoned(const std::string& name, mode_t mode = 0700,
                                   const std::string& inner = "workers") const {
    fs::path path = place(name);
    fs::create_directories(path / inner);
    std::ofstream(path / inner / "state") << "saved";
    ::chmod(path.c_str(), mode);
    return path;
  }

  test::TemporaryFolder parent_;
};

TEST_F(MemoryFolderTest, IsPrivateWhateverTheUmask) {
  const mode_t before = ::umask(0277);
  const MemoryFolder folder = make("run");
  ::umask(before);
  ASSERT_TRUE(folder);
  EXPECT_EQ(folder.outer_path(), place("lrun-memory-run"));
  EXPECT_EQ(folder.path(), place("lrun-memory-run/workers"));
  for (const std::string& path : {folder.outer_path(), folder.path()}) {
    struct stat status {};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777U, 0700U) << path;
  }
}

TEST_F(MemoryFolderTest, TakesTheNextNameWhereOneIsTaken) {
  const MemoryFolder first = make("run");
  const MemoryFolder second = make("run");
  EXPECT_EQ(second.path(), place("lrun-memory-run-2/workers"));
}

TEST_F(MemoryFolderTest, IsEmptyWhereThereIsNoMemoryFileSystem) {
  const MemoryFolder none = MemoryFolder::make("run", place("nowhere").string());
  EXPECT_EQ(errno, ENOENT);
  EXPECT_FALSE(none);
  EXPECT_EQ(none.fd(), -1);
  EXPECT_TRUE(none.path().empty());
  none.remove();
  none.remove_abandoned();
}

TEST_F(MemoryFolderTest, GoesWithAllThatIsInItAndLeavesWhatALinkNames) {
  const MemoryFolder folder = make("run");
  std::ofstream(place("precious")) << "kept";
  const fs::path workers = folder.path();
  fs::create_directories(workers / "a" / "b");
  std::ofstream(workers / "a" / "b" / "state") << "saved";
  fs::create_symlink(place("precious"), workers / "link");
  fs::create_directory_symlink(parent_.path(), workers / "up");
  folder.remove();
  EXPECT_FALSE(fs::exists(folder.outer_path()));
  EXPECT_TRUE(fs::exists(place("precious")));
}

TEST_F(MemoryFolderTest, GoesHoweverDeepItIs) {
  const MemoryFolder folder = make("run");
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  for (int depth = 0; depth < 5000; ++depth) {
    ASSERT_EQ(::mkdir("d", 0700), 0);
    ASSERT_EQ(::chdir("d"), 0);
  }
  std::ofstream("state") << "saved";
  fs::current_path(before);
  folder.remove();
  EXPECT_FALSE(fs::exists(folder.outer_path()));
  EXPECT_EQ(fs::current_path(), before);
}

TEST_F(MemoryFolderTest, LeavesAnotherFolderInItsPlaceAlone) {
  const MemoryFolder folder = make("run");
  fs::rename(folder.outer_path(), place("elsewhere"));
  const fs::path other = abandoned("lrun-memory-run");
  folder.remove();
  EXPECT_TRUE(fs::exists(other / "workers" / "state"));
}

/// Programs may do so with a folder that they were given.
TEST_F(MemoryFolderTest, GoesWhateverWorkersHaveDoneToTheirs) {
  const OrdinaryUser user;
  if (!user.is_one()) GTEST_SKIP() << "root may remove what others may not";
  const test::TemporaryFolder parent;
  const std::vector<std::function<void(const fs::path&)>> deeds{
      [](const fs::path& workers) { fs::permissions(workers, fs::perms(0755)); },
      [](const fs::path& workers) { fs::permissions(workers, fs::perms(0)); },
      [](const fs::path& workers) { fs::permissions(workers.parent_path(), fs::perms(0755)); },
      [](const fs::path& workers) { fs::permissions(workers / "inner", fs::perms(0500)); },
      [](const fs::path& workers) { fs::permissions(workers / "inner", fs::perms(0)); },
      [](const fs::path& workers) {
        fs::remove_all(workers);
        fs::create_directory(workers);
        std::ofstream(workers / "state") << "saved";
      },
      [](const fs::path& workers) { fs::remove_all(workers); },
      [](const fs::path& workers) { fs::rename(workers, workers.parent_path() / "other"); }};
  for (const auto& deed : deeds) {
    const MemoryFolder folder = MemoryFolder::make("run", parent.path().string());
    ASSERT_TRUE(folder);
    fs::create_directory(fs::path(folder.path()) / "inner");
    std::ofstream(fs::path(folder.path()) / "inner" / "state") << "saved";
    deed(folder.path());
    folder.remove();
    EXPECT_FALSE(fs::exists(folder.outer_path()));
  }
  EXPECT_TRUE(fs::is_empty(parent.path()));
}

TEST_F(MemoryFolderTest, IsMadeAgainForTheNextAttempt) {
  const MemoryFolder folder = make("run");
  fs::remove(folder.path());
  EXPECT_EQ(folder.make_again(), folder.path());
  EXPECT_TRUE(fs::is_directory(folder.path()));
  std::ofstream(fs::path(folder.path()) / "state") << "saved";
  EXPECT_EQ(folder.make_again(), folder.path());
  EXPECT_TRUE(fs::exists(fs::path(folder.path()) / "state"));
  fs::remove_all(folder.outer_path());
  EXPECT_EQ(folder.make_again(), "");
}

TEST_F(MemoryFolderTest, RemovesThoseOfKilledRunsOnly) {
  const fs::path killed = abandoned("lrun-memory-killed");
  fs::create_directory(place("lrun-memory-at-once"));
  fs::permissions(place("lrun-memory-at-once"), fs::perms(0700));
  const fs::path of_a_person = abandoned("lrun-memory-data", 0700, "files");
  const fs::path other = abandoned("lrun-data");
  fs::create_directory_symlink(other, place("lrun-memory-link"));
  const MemoryFolder running = make("running");
  const MemoryFolder folder = make("run");
  folder.remove_abandoned();
  EXPECT_FALSE(fs::exists(killed));
  EXPECT_FALSE(fs::exists(place("lrun-memory-at-once")));
  EXPECT_TRUE(fs::exists(of_a_person / "files" / "state"));
  EXPECT_TRUE(fs::exists(other / "workers" / "state"));
  EXPECT_TRUE(fs::exists(running.path()));
  EXPECT_TRUE(fs::exists(folder.path()));
}

TEST_F(MemoryFolderTest, LeavesThoseOfOtherUsersAlone) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another user";
  const fs::path others = abandoned("lrun-memory-other");
  constexpr uid_t kSomebody = 12345;
  ASSERT_EQ(::chown(others.c_str(), kSomebody, kSomebody), 0);
  make("run").remove_abandoned();
  EXPECT_TRUE(fs::exists(others / "workers" / "state"));
}

}  // namespace
}  // namespace lrun
