#include "inspect/elf_image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <link.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "support/temporary_folder.h"

namespace lrun::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<unsigned char> own_bytes() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// The file's address of a function of this program.
Address in_file(void (*function)()) {
  Address bias = 0;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* place) {
        *static_cast<Address*>(place) = info->dlpi_addr;
        return 1;  // the first is the program
      },
      &bias);
  return reinterpret_cast<Address>(function) - bias;
}

__attribute__((noinline, noclone)) void wanted_function() { asm volatile("nop"); }

TEST(ElfImage, NamesTheFunctionsAtAddresses) {
  const auto image = ElfImage::of_file("/proc/self/exe");
  ASSERT_TRUE(image);
  const Address address = in_file(&wanted_function);
  EXPECT_THAT(image->functions_at({1, address, address}),
              ElementsAre("", HasSubstr("wanted_function"), HasSubstr("wanted_function")));
  EXPECT_FALSE(image->call_frames().part.empty());
}

TEST(ElfImage, IsTheSameFromBytes) {
  const auto image = ElfImage::of_bytes(own_bytes());
  ASSERT_TRUE(image);
  EXPECT_EQ(image->functions_at({in_file(&wanted_function)}),
            ElfImage::of_file("/proc/self/exe")->functions_at({in_file(&wanted_function)}));
}

/// As lld writes files: the code begins in the page in which the part before it ends.
TEST(ElfImage, KnowsWhereCodeOfTheFileIsLoaded) {
  std::vector<unsigned char> bytes(0x3000);
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_phoff = sizeof header;
  header.e_phnum = 2;
  const Elf64_Phdr parts[] = {
      {.p_type = PT_LOAD, .p_flags = PF_R, .p_offset = 0, .p_vaddr = 0, .p_filesz = 0x1400},
      {.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_offset = 0x1400, .p_vaddr = 0x2400, .p_filesz = 0x1000}};
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + sizeof header, parts, sizeof parts);
  const auto image = ElfImage::of_bytes(bytes);
  ASSERT_TRUE(image);
  EXPECT_EQ(image->code_address_of(0x1000), std::nullopt);
  EXPECT_EQ(image->code_address_of(0x1400), Address{0x2400});
  EXPECT_EQ(image->code_address_of(0x23FF), Address{0x33FF});
  EXPECT_EQ(image->code_address_of(0x2400), std::nullopt);
  EXPECT_EQ(image->code_address_of(~std::uint64_t{0}), std::nullopt);
}

TEST(ElfImage, IsNothingElse) {
  const lrun::test::TemporaryFolder folder;
  EXPECT_FALSE(ElfImage::of_file(folder.path().string()));
  EXPECT_FALSE(ElfImage::of_file((folder.path() / "missing").string()));
  const std::string text = (folder.path() / "text").string();
  std::ofstream(text) << "#!/bin/sh\n";
  EXPECT_FALSE(ElfImage::of_file(text));
  EXPECT_FALSE(ElfImage::of_bytes({}));
}

TEST(ElfImage, MayBeCutOffAnywhere) {
  const std::vector<unsigned char> bytes = own_bytes();
  for (std::size_t count = 1; count < bytes.size(); count = count * 3 / 2 + 1) {
    const auto image = ElfImage::of_bytes({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count)});
    if (!image) continue;
    (void)image->functions_at({in_file(&wanted_function)});
    (void)image->call_frames();
  }
}

}  // namespace
}  // namespace lrun::launcher
