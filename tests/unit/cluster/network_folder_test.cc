#include "cluster/network_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "support/temporary_folder.h"

namespace lrun::launcher {
namespace {

using ::testing::HasSubstr;

TEST(NetworkFolder, IsKnownByTheKernelsNumber) {
  EXPECT_EQ(network_file_system(0x6969), "NFS");
  EXPECT_EQ(network_file_system(0x0BD00BD0), "Lustre");
  EXPECT_EQ(network_file_system(0xEF53), "") << "ext4";
  EXPECT_EQ(network_file_system(0x01021994), "") << "tmpfs";
}

TEST(NetworkFolder, IsJudgedByTheFolderAboveWhereItIsMissing) {
  EXPECT_EQ(network_file_system_of("/proc/none/at/all"), "");
  EXPECT_EQ(network_file_system_of("relative/and/missing"), "");
  EXPECT_EQ(network_file_system_of(""), "");
}

TEST(PrivateFolder, IsRefusedWhereOthersHaveAPartInIt) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path() / "caches";
  EXPECT_EQ(problem_of_private_folder(path), "");
  std::filesystem::create_directory(path);
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  EXPECT_EQ(problem_of_private_folder(path), "");
  std::filesystem::permissions(path, std::filesystem::perms::all);
  EXPECT_THAT(problem_of_private_folder(path), HasSubstr("others may write"));
  std::filesystem::remove(path);
  std::ofstream(path) << "x";
  EXPECT_THAT(problem_of_private_folder(path), HasSubstr("is no folder"));
  std::filesystem::remove(path);
  std::filesystem::permissions(folder.path(), std::filesystem::perms::all);
  EXPECT_THAT(problem_of_private_folder(path), HasSubstr("may replace"));
  EXPECT_THAT(problem_of_private_folder("/proc/none/caches"), HasSubstr("No such file"));
}

}  // namespace
}  // namespace lrun::launcher
