#include "rendezvous/membership.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "launcher_records.h"

namespace lrun::launcher {
namespace {

using test::node_at;
using test::seen_by;
using test::with_role;

TEST(SoleMembership, IsTheOneNodeOfThePlanWithTheStoresPort) {
  LaunchPlan plan;
  plan.world_size = 3;
  plan.master_addr = "127.0.0.1";
  plan.nodes = {{.name = "host", .workers = std::vector<WorkerPlan>(3)}};
  const Membership membership = sole_membership(plan, 4711);
  EXPECT_EQ(membership.world_size, 3);
  EXPECT_EQ(membership.master_addr, "127.0.0.1");
  EXPECT_EQ(membership.master_port, 4711);
  EXPECT_EQ(membership.attempt, 0);
  EXPECT_EQ(membership.self, (Member{.name = "host", .workers = 3, .role_world_size = 3}));
  EXPECT_EQ(membership.first_names, std::vector<std::string>{"host"});
}

std::optional<Membership> copy_of(const Membership& membership) {
  return membership_from_json(to_json(membership), to_json(membership.self));
}

TEST(MembershipJson, ComesBackAsItWas) {
  Membership membership =
      seen_by(1, assign_ranks({node_at("10.0.0.1", 3), with_role(node_at("10.0.0.2", 2), "a \"role\"")}));
  membership.round = 7;
  membership.history = "so \"far\"";
  EXPECT_EQ(copy_of(membership), membership);
}

/// Its files are kept by another node, and it gets those of a lost one.
Membership with_copies() {
  Membership membership = seen_by(1, assign_ranks({node_at("10.0.0.1"), node_at("10.0.0.2")}));
  membership.self.neighbour = "10.0.0.1";
  membership.self.neighbour_port = 7001;
  membership.self.inherits = {{{"a \"token\"", 1}, "10.0.0.1", 7001}, {{"another", 65'535}, "fd00::3", 65'535}};
  return membership;
}

TEST(MembershipJson, SaysWhereCopiesOfFilesAre) {
  const Membership membership = with_copies();
  EXPECT_EQ(copy_of(membership), membership);
  EXPECT_EQ(member_from_json(to_json(membership.self)), membership.self);
}

TEST(MembershipJson, RefusesAKeyOfNoNeighbour) {
  EXPECT_TRUE(
      member_from_json(R"({"node_rank":1,"name":"","base_rank":0,"workers":0,"address":"","role":"",)"
                       R"("base_role_rank":0,"role_world_size":0,"shares_name":false,"earlier_by_workers":[]})"));
  EXPECT_FALSE(member_from_json(R"({"node_rank":1,"name":"","base_rank":0,"workers":0,"address":"","role":"",)"
                                R"("base_role_rank":0,"role_world_size":0,"shares_name":false,"earlier_by_workers":[],)"
                                R"("neighbour_key":"ab"})"));
}

TEST(MembershipJson, RefusesCopiesThatNobodyCanReach) {
  for (const auto& change : std::vector<std::function<void(Member&)>>{
           [](Member& self) { self.neighbour = "a.name"; }, [](Member& self) { self.neighbour_port = 0; },
           [](Member& self) { self.neighbour_port = 65'536; }, [](Member& self) { self.neighbour_port = -1; },
           [](Member& self) { self.inherits[0].address = "a.name"; },
           [](Member& self) { self.inherits[0].address.clear(); }, [](Member& self) { self.inherits[1].port = 0; },
           [](Member& self) { self.inherits[1].port = 65'536; },
           [](Member& self) { self.inherits[0].owner.token.clear(); },
           [](Member& self) { self.inherits[0].owner.token.assign(2000, 'x'); },
           [](Member& self) { self.inherits[0].owner.node_rank = -1; },
           [](Member& self) { self.inherits[0].owner.node_rank = 65'536; },
           [](Member& self) { self.inherits.resize(Member::kMostInherited + 1, self.inherits[0]); }}) {
    Membership bad = with_copies();
    change(bad.self);
    EXPECT_FALSE(copy_of(bad)) << to_json(bad.self);
    EXPECT_FALSE(member_from_json(to_json(bad.self))) << to_json(bad.self);
  }
  Membership many = with_copies();
  many.self.inherits.resize(Member::kMostInherited, many.self.inherits[0]);
  EXPECT_EQ(copy_of(many), many);
}

TEST(MemberJson, RefusesOtherJson) {
  for (const char* const text : {"", "{", "[]", "{}", "5", R"({"node_rank": 0})"}) {
    EXPECT_FALSE(member_from_json(text)) << text;
  }
  std::string odd = to_json(with_copies().self);
  odd.replace(odd.find("7001"), 4, "1e90");
  EXPECT_FALSE(member_from_json(odd)) << odd;
}

TEST(FileOwnersJson, ComesBackAsItWas) {
  using Owners = std::vector<FileOwner>;
  for (const Owners& owners : {Owners{}, Owners{{"a", 0}}, Owners{{"b \"c\"", 65'535}, {std::string(1024, 'x'), 3}},
                               Owners(Member::kMostInherited, FileOwner{"a", 1})}) {
    EXPECT_EQ(file_owners_from_json(to_json(owners)), owners) << to_json(owners);
  }
}

TEST(FileOwnersJson, RefusesOwnersThatCannotBe) {
  using Owners = std::vector<FileOwner>;
  for (const Owners& owners : {Owners{{"", 0}}, Owners{{"a", -1}}, Owners{{"a", 65'536}},
                               Owners{{std::string(1025, 'x'), 3}}, Owners(Member::kMostInherited + 1, {"a", 1})}) {
    EXPECT_FALSE(file_owners_from_json(to_json(owners))) << to_json(owners);
  }
  for (const char* const text : {"", "5", R"("text")", R"([5])", R"([["a"]])", R"([[0, "a"]])", R"([["a", 0.5]])",
                                 R"([["a", 1e300]])", R"([["a", 4294967296]])", "[[]"}) {
    EXPECT_FALSE(file_owners_from_json(text)) << text;
  }
}

TEST(MembershipJson, IsTakenFromEveryPlaceOfAJob) {
  std::vector<JoinRecord> nodes;
  for (int host = 1; host <= 12; ++host) {
    nodes.push_back(with_role(node_at("10.0.0." + std::to_string(host), 1 + host % 3), host % 2 == 0 ? "ps" : "tr"));
  }
  const RankAssignment assignment = assign_ranks(nodes);
  EXPECT_EQ(assignment.common.first_names.size(), Membership::kMostNamedNodes);
  EXPECT_EQ(assignment.common.first_names.back(), "node-10.0.0.9");
  for (std::size_t rank = 0; rank < nodes.size(); ++rank) EXPECT_TRUE(copy_of(seen_by(rank, assignment))) << rank;
}

TEST(MembershipJson, RefusesWhatContradictsItself) {
  const RankAssignment assignment = assign_ranks({node_at("10.0.0.1", 3), node_at("10.0.0.2", 2), node_at("10.0.0.3")});
  const auto refused = [&](auto change) {
    Membership bad = seen_by(1, assignment);
    change(bad);
    return !copy_of(bad);
  };
  EXPECT_FALSE(refused([](Membership&) {}));
  EXPECT_TRUE(refused([](Membership& bad) { bad.num_nodes = 0; }));
  EXPECT_TRUE(refused([](Membership& bad) { bad.num_nodes = 65'537; }));
  EXPECT_TRUE(refused([](Membership& bad) { bad.first_names.pop_back(); }));
  EXPECT_TRUE(refused([](Membership& bad) { bad.nodes_by_workers.clear(); }));
  EXPECT_TRUE(refused([](Membership& bad) { bad.nodes_by_workers = {{2, 3}}; })) << "as many workers on other nodes";
  EXPECT_TRUE(refused([](Membership& bad) { bad.nodes_by_workers = {{3, 2}, {0, 1}}; }));
  EXPECT_TRUE(refused([](Membership& bad) { bad.self.earlier_by_workers = {{2, 1}}; }));
  EXPECT_TRUE(refused([](Membership& bad) { bad.self.earlier_by_workers.clear(); }));
  EXPECT_TRUE(refused([](Membership& bad) { bad.self.node_rank = 3; }));
  EXPECT_TRUE(refused([](Membership& bad) { bad.self.node_rank = -1; }));
  EXPECT_TRUE(refused([](Membership& bad) { bad.self.node_rank = 0; })) << "the first node has the first rank";
  EXPECT_TRUE(refused([](Membership& bad) { bad.self.node_rank = 2; })) << "there are workers behind the last";
  EXPECT_TRUE(refused([](Membership& bad) { bad.world_size = 5; })) << "no worker is left for the last node";
  EXPECT_TRUE(refused([](Membership& bad) { bad.world_size = 2147483647; }));
  EXPECT_TRUE(refused([](Membership& bad) { bad.self.base_rank = -1; }));
  EXPECT_TRUE(refused([](Membership& bad) { bad.self.base_rank = 2147483647; }));
  EXPECT_TRUE(refused([](Membership& bad) { bad.self.workers = 0; }));
  EXPECT_TRUE(refused([](Membership& bad) { bad.self.base_role_rank = 2147483647; }));
  EXPECT_TRUE(refused([](Membership& bad) { bad.self.role_world_size = 1; }));
  EXPECT_TRUE(refused([](Membership& bad) { bad.master_port = 0; }));
  EXPECT_FALSE(membership_from_json("{}", "{}"));
  EXPECT_FALSE(membership_from_json("[1", "{}"));
  EXPECT_FALSE(membership_from_json(to_json(assignment.common), "[]"));
}

}  // namespace
}  // namespace lrun::launcher
