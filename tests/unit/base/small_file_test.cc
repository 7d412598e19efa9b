#include "base/small_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

namespace lrun {
namespace {

class SmallFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "lrun-small-file-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
};

TEST_F(SmallFile, IsReadWhole) {
  std::ofstream(folder_ / "a") << std::string(20'000, 'x');
  EXPECT_EQ(read_small_file(folder_ / "a", 20'000), std::string(20'000, 'x'));
  EXPECT_EQ(read_small_file(folder_ / "a", 19'999), std::nullopt) << "longer than allowed";
}

TEST_F(SmallFile, HasAHeadOfAnyLength) {
  std::ofstream(folder_ / "a") << std::string(10'000, 'x') << std::string(10'000, 'y');
  EXPECT_EQ(read_file_head(folder_ / "a", 4), "xxxx");
  EXPECT_EQ(read_file_head(folder_ / "a", 10'001), std::string(10'000, 'x') + "y");
  EXPECT_EQ(read_file_head(folder_ / "a", 30'000).size(), 20'000U);
}

TEST_F(SmallFile, ThatTheKernelMakesUpIsReadToo) {
  const auto text = read_small_file("/proc/self/cgroup", 65'536);
  ASSERT_TRUE(text);
  EXPECT_NE(text->find(':'), std::string::npos);
}

TEST_F(SmallFile, IsNoPipeNoFolderAndNotMissing) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(read_small_file(folder_ / "pipe", 100), std::nullopt) << "and nobody waits for a writer";
  EXPECT_EQ(read_small_file(folder_, 100), std::nullopt);
  EXPECT_EQ(read_small_file(folder_ / "missing", 100), std::nullopt);
  for (const char* const name : {"pipe", "", "missing"}) EXPECT_EQ(read_file_head(folder_ / name, 100), "") << name;
}

}  // namespace
}  // namespace lrun
