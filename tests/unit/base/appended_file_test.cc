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
  const std::filesystem::path path_ = folder_.path() / "file";
};

TEST_F(AppendedFile, IsMadeAndGrowsAtItsEnd) {
  for (const char letter : {'a', 'b'}) {
    const Fd fd = open_to_append(path_, 0600);
    ASSERT_EQ(::write(fd.get(), &letter, 1), 1);
    EXPECT_EQ(::fcntl(fd.get(), F_GETFL) & (O_NONBLOCK | O_APPEND), O_APPEND) << "as a worker is to inherit it";
  }
  std::ifstream file(path_);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "ab");
}

TEST_F(AppendedFile, IsNoPipeWithOrWithoutAReader) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_FALSE(open_to_append(path_, 0600)) << "and nobody waits";
  EXPECT_EQ(errno, ENXIO);
  const Fd reader(::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  EXPECT_FALSE(open_to_append(path_, 0600));
  EXPECT_EQ(file_refusal_in_words(errno), "it is not a regular file");
}

TEST_F(AppendedFile, IsNoDevice) {
  EXPECT_FALSE(open_to_append("/dev/null", 0600));
  EXPECT_EQ(errno, ENXIO);
}

TEST_F(AppendedFile, SaysWhatTheMachineRefuses) {
  EXPECT_FALSE(open_to_append(folder_.path() / "missing" / "file", 0600));
  EXPECT_EQ(errno, ENOENT);
}

}  // namespace
}  // namespace lrun
