#include "plan/resource_limit.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace lrun::launcher {
namespace {

std::string limit(const std::string& name, const std::string& text) {
  const auto resource = find_resource(name);
  const auto parsed = resource ? parse_limit(*resource, text) : std::nullopt;
  return parsed ? text_of(*parsed) : "(refused)";
}

TEST(ResourceLimit, IsReadWithItsUnits) {
  EXPECT_EQ(limit("nofile", "1024:4096"), "nofile=1024:4096");
  EXPECT_EQ(limit("RLIMIT_NOFILE", "1024"), "nofile=1024");
  EXPECT_EQ(limit("core", "unlimited"), "core=unlimited");
  EXPECT_EQ(limit("core", "0:infinity"), "core=0:unlimited");
  EXPECT_EQ(limit("memlock", "64K:1g"), "memlock=65536:1073741824");
}

TEST(ResourceLimit, ThatMakesNoSenseIsRefused) {
  for (const char* const text :
       {"", ":", "1:", "x", "-1", "2:1", "unlimited:1", "1 ", "1KB", "20000000000T", "1:2:3"}) {
    EXPECT_EQ(limit("core", text), "(refused)") << text;
  }
  EXPECT_EQ(limit("nofile", "1K"), "(refused)") << "descriptors are not bytes";
}

TEST(ResourceLimit, EveryNameIsAResource) {
  for (const std::string& name : resource_names()) {
    const auto resource = find_resource(name);
    ASSERT_TRUE(resource) << name;
    EXPECT_EQ(resource_name(*resource), name);
  }
  EXPECT_FALSE(find_resource("files"));
}

TEST(ResourceLimit, TheLastOneOfAResourceCounts) {
  std::vector<ResourceLimit> limits;
  add_limit(limits, *parse_limit(RLIMIT_CORE, "1"));
  add_limit(limits, *parse_limit(RLIMIT_NOFILE, "2"));
  add_limit(limits, *parse_limit(RLIMIT_CORE, "3"));
  ASSERT_EQ(limits.size(), 2U);
  EXPECT_EQ(text_of(limits.front()), "core=3");
}

}  // namespace
}  // namespace lrun::launcher
