#include "store/client_shares.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <string>

namespace lrun::launcher {
namespace {

using Where = ConnectionPeer::Where;

ConnectionPlace from_ipv4(std::uint32_t address) {
  return {.peer = {htonl(address)}, .own = {htonl(0x0A000001)}, .peer_port = htons(40'000), .own_port = htons(29'500)};
}

const ConnectionPlace kLoopback{.peer = {htonl(0x7F000001)}, .own = {htonl(0x7F000001)}};

ConnectionPeer here(std::uint64_t inode, uid_t user = 1000) { return {Where::kHere, user, inode}; }

class ClientSharesTest : public ::testing::Test {
 protected:
  void add_here(StoreClientId id) { shares_.add(id, kLoopback, here(id)); }
  void add_from(StoreClientId id, std::uint32_t address) { shares_.add(id, from_ipv4(address), {}); }
  /// The run's own are those with these numbers.
  void classify(std::initializer_list<std::uint64_t> inodes) {
    const RunSockets of_run{.inodes = inodes};
    shares_.classify(&of_run);
  }
  [[nodiscard]] bool may(StoreClientId id, std::uint64_t bytes, std::uint64_t table = 0) const {
    return shares_.why_not(id, bytes, table).empty();
  }
  [[nodiscard]] StoreClientId leaving(const ConnectionPlace& newcomer = kLoopback) const {
    const auto eviction = shares_.find_eviction(newcomer);
    return eviction ? eviction->client : 0;
  }

  ClientShares shares_{{.most_bytes = 1000, .most_of_others_here = 100, .most_of_a_host = 400}};
};

TEST_F(ClientSharesTest, TheRunsOwnMayHaveTheWholeAndOthersOfItsHostAPart) {
  add_here(1);
  add_here(2);
  add_here(3);
  EXPECT_FALSE(may(1, 101)) << "nobody knows yet whose it is";
  EXPECT_TRUE(shares_.is_unclassified(1));
  classify({1});
  EXPECT_TRUE(may(1, 1000));
  EXPECT_TRUE(may(2, 100));
  shares_.hold(2, 60);
  EXPECT_FALSE(may(3, 41)) << "others share their part";
  EXPECT_TRUE(may(3, 40));
  EXPECT_FALSE(may(1, 941)) << "all share the whole";
  EXPECT_EQ(shares_.why_not(1, 941, 0), "the store is full: it takes 1000 bytes at most");
  EXPECT_FALSE(may(1, 500, 500)) << "and the table is part of it";
}

TEST_F(ClientSharesTest, NewcomersShareThePartOfThoseThatAreNotTheRuns) {
  add_here(1);
  classify({});
  shares_.hold(1, 90);
  add_here(2);
  EXPECT_FALSE(may(2, 11));
  EXPECT_TRUE(may(2, 10));
}

TEST_F(ClientSharesTest, ANewcomerDoesNotSufferForOthersWhileNobodyCanTellWhoseItIs) {
  add_here(1);
  classify({});
  shares_.hold(1, 100);
  add_here(2);
  EXPECT_FALSE(may(2, 1));
  EXPECT_EQ(shares_.why_not_yet(2, 400, 0), "");
  EXPECT_NE(shares_.why_not_yet(2, 401, 0), "") << "newcomers have the part of another host";
  EXPECT_NE(shares_.why_not_yet(2, 1, 900), "") << "and the whole bounds all";
  classify({});
  EXPECT_NE(shares_.why_not_yet(2, 1, 0), "") << "it does not belong to the run";
}

TEST_F(ClientSharesTest, EachOtherHostHasAPartOfItsOwn) {
  add_from(1, 0x0A000002);
  add_from(2, 0x0A000002);
  add_from(3, 0x0A000003);
  shares_.hold(1, 300);
  EXPECT_FALSE(may(2, 101));
  EXPECT_TRUE(may(3, 400));
  shares_.remove(1);
  EXPECT_TRUE(may(2, 400)) << "what it held is free";
}

TEST_F(ClientSharesTest, WhatIsHeldFollowsAClientIntoItsGroup) {
  add_here(1);
  add_here(2);
  shares_.hold(1, 90);
  classify({1});
  EXPECT_TRUE(may(2, 100));
  shares_.hold(1, 0);
  EXPECT_TRUE(may(1, 1000));
}

TEST_F(ClientSharesTest, AllOfTheHostAreTheRunsWhereNobodyLooks) {
  add_here(1);
  shares_.classify(nullptr);
  EXPECT_TRUE(may(1, 1000));
  shares_.validated(1);
  EXPECT_EQ(leaving(), 0U);
}

TEST_F(ClientSharesTest, OfAProcessThatMayNotBeLookedAtTheUserTells) {
  shares_.add(1, kLoopback, here(1, 1001));
  const RunSockets of_run{.inodes = {}, .hidden_users = {1001}};
  shares_.classify(&of_run);
  EXPECT_TRUE(may(1, 1000));
}

TEST_F(ClientSharesTest, WhereTheKernelDoesNotTellAConnectionWithinTheHostIsTheRuns) {
  shares_.add(1, kLoopback, {});
  EXPECT_TRUE(may(1, 1000));
}

TEST_F(ClientSharesTest, TheOldestThatIsSilentOrNoProcessOfTheRunIsEvicted) {
  for (const StoreClientId id : {1U, 2U, 3U, 4U}) add_here(id);
  EXPECT_EQ(leaving(), 1U) << "all are silent";
  for (const StoreClientId id : {1U, 2U, 4U}) shares_.validated(id);
  classify({1, 3});
  EXPECT_EQ(leaving(), 2U) << "it was validated, and does not belong to the run";
  shares_.remove(2);
  EXPECT_EQ(leaving(), 3U) << "the run's, and silent; 4 came later";
  shares_.validated(3);
  EXPECT_EQ(leaving(), 4U);
  shares_.remove(4);
  EXPECT_EQ(leaving(), 0U) << "the run's own keep their places";
}

TEST_F(ClientSharesTest, TheHostWithTheMostConnectionsGivesWayToOthers) {
  const std::uint32_t greedy = 0x0A000002;
  for (StoreClientId id = 1; id <= 4; ++id) add_from(id, greedy);
  add_from(5, 0x0A000003);
  for (StoreClientId id = 1; id <= 5; ++id) shares_.validated(id);
  EXPECT_EQ(leaving(from_ipv4(0x0A000003)), 1U);
  EXPECT_EQ(leaving(kLoopback), 1U);
  EXPECT_EQ(leaving(from_ipv4(greedy)), 0U) << "not to another of its own";
  shares_.remove(1);
  shares_.remove(2);
  EXPECT_EQ(leaving(from_ipv4(0x0A000003)), 0U) << "they would only change places";
}

TEST_F(ClientSharesTest, AHostOfIPv6IsItsNetwork) {
  const auto from = [](std::uint32_t last) {
    return ConnectionPlace{
        .is_ipv6 = true, .peer = {htonl(0x20010DB8), 0, 0, htonl(last)}, .own = {htonl(0x20010DB8), 1}};
  };
  shares_.add(1, from(1), {});
  shares_.add(2, from(2), {});
  shares_.hold(1, 400);
  EXPECT_FALSE(may(2, 1));
}

TEST_F(ClientSharesTest, ForgetsAll) {
  add_here(1);
  add_from(2, 0x0A000002);
  shares_.hold(1, 100);
  shares_.hold(2, 400);
  shares_.clear();
  add_here(1);
  EXPECT_TRUE(may(1, 100, 900));
  EXPECT_EQ(shares_.num_silent(), 1U);
}

}  // namespace
}  // namespace lrun::launcher
