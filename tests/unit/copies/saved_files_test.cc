#include "copies/saved_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/log_test_support.h"
#include "support/temporary_folder.h"

namespace lrun::launcher {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

class SavedFilesTest : public ::testing::Test {
 protected:
  void save(const std::string& name, const std::string& text = "text") const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << text;
  }
  [[nodiscard]] SavedFiles saved() const { return saved_files(folder_.path()); }
  [[nodiscard]] Names names() const {
    Names names;
    for (const auto& [path, stamp] : saved()) names.push_back(path);
    return names;
  }
  [[nodiscard]] OpenFile opened(const std::string& name) const { return open_complete(folder_.path(), name); }

  TemporaryFolder folder_;
};

TEST_F(SavedFilesTest, AreThoseOfAllFolders) {
  save("a");
  save("inner/b");
  save("inner/most/c", "longer");
  save(".hidden");
  fs::create_directory(folder_ / "empty");
  EXPECT_EQ(names(), (Names{".hidden", "a", "inner/b", "inner/most/c"}));
  EXPECT_EQ(saved().at("inner/most/c").bytes, 6U);
}

TEST_F(SavedFilesTest, DoNotExistWithoutAFolder) { EXPECT_EQ(saved_files(folder_ / "none"), SavedFiles()); }

TEST_F(SavedFilesTest, AreNeitherLinksNorSpecialFilesNorUnfinished) {
  save("a");
  save("x.tmp");
  save("x.part");
  save("tmp-checkpoint-5/b");
  fs::create_symlink("a", folder_ / "link");
  fs::create_directory_symlink("/proc/self", folder_ / "processes");
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  const Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  (folder_ / "socket").string().copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(names(), Names{"a"});
  for (const char* const name : {"link", "pipe", "socket", "none", "processes"}) EXPECT_FALSE(opened(name).fd) << name;
}

TEST_F(SavedFilesTest, TellOfEachFolderBeforeItIsRead) {
  save("inner/most/c");
  Names folders;
  const SavedFiles files = saved_files(folder_.path(), [&](const char* path) {
    folders.push_back(fs::path(path).lexically_normal().lexically_relative(folder_.path().lexically_normal()));
    if (folders.size() == 1) save("late");
  });
  EXPECT_EQ(folders, (Names{".", "inner/", "inner/most/"}));
  EXPECT_TRUE(files.contains("late"));
}

TEST_F(SavedFilesTest, TellAFileFromTheOneThatHadItsName) {
  save("a", "old");
  const OpenFile before = opened("a");
  save("a.new", "new");
  fs::rename(folder_ / "a.new", folder_ / "a");
  fs::last_write_time(folder_ / "a", fs::file_time_type::clock::now() - std::chrono::hours(1));
  EXPECT_NE(saved().at("a"), before.stamp);
  char text[8] = {};
  EXPECT_EQ(::pread(before.fd.get(), text, sizeof text, 0), 3);
  EXPECT_STREQ(text, "old") << "what is open stays";
  EXPECT_TRUE(is_unchanged(before));
}

TEST_F(SavedFilesTest, HaveTheirMode) {
  save("a");
  fs::permissions(folder_ / "a", fs::perms(0751));
  const OpenFile file = opened("a");
  EXPECT_EQ(file.mode, 0751U);
  EXPECT_EQ(file.path, "a");
  EXPECT_EQ(file.stamp, saved().at("a"));
}

TEST_F(SavedFilesTest, AreNotCompleteWhileAProgramWrites) {
  std::ofstream writer(folder_ / "a");
  writer << "half" << std::flush;
  EXPECT_EQ(names(), Names{"a"});
  EXPECT_FALSE(opened("a").fd);
  writer.close();
  EXPECT_TRUE(opened("a").fd);
}

TEST_F(SavedFilesTest, AreNotCompleteWhileAProgramMayWriteThroughMemory) {
  save("a");
  Fd file(::open((folder_ / "a").c_str(), O_RDWR | O_CLOEXEC));
  void* const memory = ::mmap(nullptr, 4, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  ASSERT_NE(memory, MAP_FAILED);
  file.reset();
  EXPECT_FALSE(opened("a").fd);
  ::munmap(memory, 4);
  EXPECT_TRUE(opened("a").fd);
}

TEST_F(SavedFilesTest, AreCompleteWhileAProgramReads) {
  save("a");
  const std::ifstream reader(folder_ / "a");
  EXPECT_TRUE(opened("a").fd);
}

/// The lease is given back, so nobody waits for it.
TEST_F(SavedFilesTest, MayBeWrittenWhileTheyAreOpen) {
  save("a");
  const OpenFile file = opened("a");
  ASSERT_TRUE(file.fd);
  EXPECT_TRUE(is_unchanged(file));
  const Fd writer(::open((folder_ / "a").c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  ASSERT_TRUE(writer);
  EXPECT_TRUE(is_unchanged(file));
  ASSERT_EQ(::write(writer.get(), "longer text", 11), 11);
  EXPECT_FALSE(is_unchanged(file));
}

TEST_F(SavedFilesTest, AreUnchangedWhereTheirNameIsGone) {
  save("a");
  const OpenFile file = opened("a");
  fs::remove(folder_ / "a");
  EXPECT_TRUE(is_unchanged(file));
}

TEST_F(SavedFilesTest, AreChangedByATimeInTheFuture) {
  save("a");
  const OpenFile file = opened("a");
  fs::last_write_time(folder_ / "a", fs::file_time_type::clock::now() + std::chrono::hours(1));
  EXPECT_FALSE(is_unchanged(file));
}

}  // namespace
}  // namespace lrun::launcher
