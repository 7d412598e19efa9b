#include "inspect/mapping.h"

#include <gtest/gtest.h>
#include <sys/auxv.h>
#include <unistd.h>

namespace lrun::launcher {
namespace {

TEST(Mapping, SaysWhichPartOfItsFileItShows) {
  EXPECT_EQ(mapping_of("7f3809d50000-7f3809d76000 r--p 00000000 08:01 1234                       /usr/lib/a b.so"),
            (Mapping{0x7f3809d50000, 0x7f3809d76000, 0, "/usr/lib/a b.so"}));
  EXPECT_EQ(mapping_of("7f3809d76000-7f3809dcb000 r-xp 00026000 08:01 1234  /usr/lib/a.so"),
            (Mapping{0x7f3809d76000, 0x7f3809dcb000, 0x26000, "/usr/lib/a.so"}));
  EXPECT_EQ(mapping_of("7f00-8000 rw-p 00000000 00:00 0 "), (Mapping{0x7f00, 0x8000, 0, ""}));
  for (const char* const line : {"", "-", "7f-", "7f-80", "x-y r--p 0 0 0 /a", "7f00-8000", "7f00 8000 rw-p 0 0 0 /a",
                                 "7f00-8000 rw-p z 0 0 /a", "10000000000000000-20000000000000000 rw-p 0 0 0 /a"}) {
    EXPECT_EQ(mapping_of(line), std::nullopt) << line;
  }
}

TEST(Mapping, IsTheFirstOfAFileOnly) {
  EXPECT_TRUE((Mapping{0x1000, 0x2000, 0, "/a"}.is_first_of_file()));
  EXPECT_FALSE((Mapping{0x1000, 0x2000, 0x1000, "/a"}.is_first_of_file()));
  EXPECT_FALSE((Mapping{0x1000, 0x2000, 0, "[heap]"}.is_first_of_file()));
  EXPECT_FALSE((Mapping{0x1000, 0x2000, 0, ""}.is_first_of_file()));
}

TEST(Mapping, IsFoundByAnAddressInIt) {
  const std::vector<Mapping> mappings{{0x1000, 0x2000}, {0x3000, 0x4000}};
  for (const Address nowhere : {Address{0}, Address{0xFFF}, Address{0x2000}, Address{0x2FFF}, Address{0x4000}}) {
    EXPECT_EQ(mapping_at(mappings, nowhere), nullptr) << nowhere;
  }
  EXPECT_EQ(mapping_at(mappings, 0x1000), &mappings[0]);
  EXPECT_EQ(mapping_at(mappings, 0x3FFF), &mappings[1]);
  EXPECT_EQ(mapping_at({}, 0x1000), nullptr);
}

TEST(Mapping, IsThereForWhatAProcessUses) {
  // The kernel puts these bytes there; AddressSanitizer keeps local variables elsewhere.
  const Address on_stack = ::getauxval(AT_RANDOM);
  const std::vector<Mapping> mappings = mappings_of(::getpid());
  const Mapping* const stack = mapping_at(mappings, on_stack);
  ASSERT_NE(stack, nullptr);
  EXPECT_EQ(stack->path, "[stack]");
}

}  // namespace
}  // namespace lrun::launcher
