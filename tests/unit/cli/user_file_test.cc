#include "cli/user_file.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "base/fd.h"
#include "support/temporary_folder.h"

namespace lrun::launcher {
namespace {

using test::TemporaryFolder;

TEST(UserFile, TellsWhatIsThereFromWhatIsNot) {
  EXPECT_EQ(read_user_file("/dev/null", 100).error_number, 0);
  EXPECT_EQ(read_user_file("/nowhere/lrun.toml", 100).error_number, ENOENT);
  EXPECT_EQ(read_user_file("/", 100).error_number, EISDIR);
  EXPECT_EQ(read_user_file("/dev/zero", 100).error_number, ENXIO) << "no regular file";
}

TEST(UserFile, IsNeitherTooLongNorALinkToNothing) {
  const TemporaryFolder folder;
  const std::string file = folder.path() / "file";
  std::ofstream(file) << "12345";
  EXPECT_EQ(read_user_file(file, 5).text, "12345");
  EXPECT_EQ(read_user_file(file, 4).error_number, EFBIG);
  const std::string link = folder.path() / "link";
  std::filesystem::create_symlink("nowhere", link);
  EXPECT_EQ(read_user_file(link, 5).error_number, ENOLINK);
}

TEST(UserFile, WaitsForWhatIsWrittenToAPipe) {
  Pipe pipe = make_pipe();
  std::thread writer([&pipe] {
    EXPECT_EQ(write_all(pipe.write.get(), "devices = 2"), 0);
    pipe.write.reset();
  });
  const FileText file = read_user_file("/dev/fd/" + std::to_string(pipe.read.get()), 100);
  writer.join();
  EXPECT_EQ(file.error_number, 0);
  EXPECT_EQ(file.text, "devices = 2");
}

}  // namespace
}  // namespace lrun::launcher
