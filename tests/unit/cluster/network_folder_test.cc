#include "cluster/network_folder.h"

#include <gtest/gtest.h>

namespace lrun::launcher {
namespace {

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

}  // namespace
}  // namespace lrun::launcher
