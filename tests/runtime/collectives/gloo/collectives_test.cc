// Properties of 'gloo' alone: its addresses, deaths that only a connection shows, and the arithmetic of 'shm'.

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/collectives/bootstrap/local_address.h"
#include "runtime/collectives/common/watchdog.h"
#include "runtime/collectives/gloo/setup.h"
#include "runtime/support/backend_ranks.h"

namespace lrun::detail::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Gloo, NamesARankThatIsKilledInTheMiddleOfAnAllReduce) {
  for (std::int64_t count : {100, 3'000'000}) {
    SharedCounter steps;
    const std::string name = "gloo-killed-" + std::to_string(count);
    std::vector<RankProcess> ranks;
    for (int rank = 0; rank < 3; ++rank) {
      ranks.emplace_back(
          group_of(rank, 3, name, 90s),
          [&](Collectives& group) {
            const at::Tensor tensor = at::ones({count}, at::kFloat);
            for (;;) {
              group.all_reduce(tensor, ReduceOp::kMax)->wait();
              if (group.rank() == 1) steps.add();
            }
          },
          "gloo");
    }
    steps.wait_for_at_least(3);
    const auto killed = std::chrono::steady_clock::now();
    ranks[1].kill();
    const std::string text = "rank 1 (pid " + std::to_string(ranks[1].pid()) + ") ended during all_reduce #";
    EXPECT_THAT(ranks[0].result(), AllOf(StartsWith("PeerLost: "), HasSubstr(text)));
    EXPECT_THAT(ranks[2].result(), AllOf(StartsWith("PeerLost: "), HasSubstr(text)));
    EXPECT_LT(std::chrono::steady_clock::now() - killed, 30s) << "noticed by the deadline only";
    EXPECT_EQ(ranks[1].result(), "killed by signal 9");
  }
}

TEST(Gloo, NamesAKilledRankWhoseOwnChildHoldsTheConnection) {
  SharedCounter forked;
  SharedCounter told;
  std::vector<RankProcess> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.emplace_back(
        group_of(rank, 2, "gloo-held", 90s),
        [&](Collectives& group) {
          group.barrier();
          if (group.rank() == 0) return group.all_reduce(at::ones({100}), ReduceOp::kSum)->wait();
          if (::fork() == 0) {
            forked.add();
            static_cast<void>(error_of([&] { told.wait_for(1); }));
            ::_exit(0);
          }
          for (;;) ::pause();
        },
        "gloo");
  }
  forked.wait_for(1);
  ranks[1].kill();
  const std::string error = ranks[0].result();
  told.add();
  EXPECT_EQ(error, "PeerLost: rank 1 (pid " + std::to_string(ranks[1].pid()) + ") ended during all_reduce #2");
}

/// Element i of rank r: sums of these depend on their order.
at::Tensor uneven(int rank, std::int64_t count, at::ScalarType dtype) {
  return (at::arange(count, at::kLong).add(rank * 977).remainder(1009).to(at::kDouble) * 0.1 + rank).to(dtype);
}

TEST(Gloo, SumsInRankOrderWithTheBitsOfOtherBackends) {
  const std::vector<std::pair<at::ScalarType, std::int64_t>> cases = {
      {at::kFloat, 7}, {at::kBFloat16, 70'001}, {at::kDouble, 1'200'007}};  // the last in three pieces
  for (const std::string backend : {"gloo", "shm", "threads"}) {
    const auto errors = run_ranks(backend, 3, [&](Collectives& group) {
      for (const auto& [dtype, count] : cases) {
        at::Tensor tensor = uneven(group.rank(), count, dtype);
        group.all_reduce(tensor, ReduceOp::kAverage)->wait();
        const at::ScalarType wide = dtype == at::kDouble ? at::kDouble : at::kFloat;
        at::Tensor sum = uneven(0, count, dtype).to(wide);
        for (int rank = 1; rank < 3; ++rank) sum += uneven(rank, count, dtype).to(wide);
        require_equal(tensor, (sum / 3).to(dtype), backend + ": the average");
      }
    });
    EXPECT_THAT(errors, Each(std::string())) << backend;
  }
}

TEST(Gloo, BroadcastsInSharesFromEveryRoot) {
  EXPECT_THAT(run_ranks("gloo", 3,
                        [](Collectives& group) {
                          for (int root = 0; root < 3; ++root) {
                            at::Tensor tensor = uneven(group.rank(), 1'000'003, at::kFloat);
                            group.broadcast(tensor, root);
                            require_equal(tensor, uneven(root, 1'000'003, at::kFloat), "what the root had");
                          }
                        }),
              Each(std::string()));
}

TEST(GlooIdentity, IsReadAsItWasWritten) {
  const GlooIdentity identity{ProcessIdentity::of_this_process(), "fd00::7"};
  EXPECT_EQ(GlooIdentity::parse(identity.line()), identity);
  EXPECT_THAT(error_of([] { GlooIdentity::parse("gloo 99 192.0.2.1 host 1 2"); }), HasSubstr("not of this version"));
}

TEST(GlooIdentity, LooksForAnotherAddressOnlyWhereItsOwnServesNobodyElse) {
  const ProcessIdentity here{"here", 1, 10};
  const ProcessIdentity there{"there", 1, 10};
  EXPECT_EQ(better_direction({{here, "127.0.0.1"}, {here, "127.0.0.1"}}, 0), std::nullopt);
  EXPECT_EQ(better_direction({{here, "192.0.2.1"}, {there, "192.0.2.2"}}, 0), std::nullopt);
  EXPECT_EQ(better_direction({{here, "127.0.1.1"}, {here, "127.0.1.1"}, {there, "192.0.2.2"}}, 0), "192.0.2.2");
  EXPECT_EQ(better_direction({{here, "::1"}, {there, "fd00::2"}}, 0), "fd00::2");
  EXPECT_EQ(better_direction({{here, "127.0.0.1"}, {there, "127.0.0.1"}}, 0), std::nullopt);
}

TEST(LocalAddress, IsThatOfTheInterfaceOfTheRoute) {
  EXPECT_EQ(local_address_towards("127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(local_address_towards("no-number"), std::nullopt);
  EXPECT_TRUE(is_loopback("127.0.1.1"));
  EXPECT_TRUE(is_loopback("::1"));
  EXPECT_FALSE(is_loopback("192.0.2.1"));
  EXPECT_FALSE(is_loopback("fd00::1"));
}

TEST(Watchdog, LooksWhileArmedAndExpiresOnce) {
  SharedCounter looked;
  SharedCounter expired;
  Watchdog watchdog([&] { looked.add(); }, [&] { expired.add(); });
  watchdog.arm(std::chrono::steady_clock::now() + 1h);
  looked.wait_for_at_least(2);
  watchdog.disarm();
  watchdog.arm(std::chrono::steady_clock::now());
  expired.wait_for(1);
  watchdog.arm(std::chrono::steady_clock::now());  // again, from its idle state
  expired.wait_for(2);
}

}  // namespace
}  // namespace lrun::detail::testing
