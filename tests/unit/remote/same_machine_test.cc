#include "remote/same_machine.h"

#include <gtest/gtest.h>

namespace lrun::launcher {
namespace {

using Names = std::vector<std::string>;

ReachedHost on(const std::string& name, const std::string& machine) { return {name, false, {0, "", "", machine}}; }

TEST(SameMachine, IsToldByItsIdentityAndNotByNames) {
  const std::vector<ReachedHost> hosts{on("a", "1"), on("b", "2"), on("alias-of-a", "1"), on("c", "3")};
  EXPECT_EQ(names_of_machine(hosts, 0), (Names{"a", "alias-of-a"}));
  EXPECT_EQ(names_of_machine(hosts, 2), (Names{"a", "alias-of-a"})) << "the same for both";
  EXPECT_EQ(names_of_machine(hosts, 1), Names());
}

TEST(SameMachine, IsNobodysWhereHostsDoNotSayWhichTheyAre) {
  EXPECT_EQ(names_of_machine({on("a", ""), on("b", "")}, 0), Names());
}

}  // namespace
}  // namespace lrun::launcher
