// The calls of NCCL by replicas with a GPU each, and their failures: on a link without NCCL.
#include "runtime/dp/replica_group.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <lrun/error.h>

#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/dp/replica_connection.h"
#include "runtime/support/fake_replica_link.h"

namespace lrun::detail {
namespace {

using namespace std::chrono_literals;
using test::FakeNccl;
using test::FakeReplicaLink;
using Ranges = std::vector<std::pair<std::size_t, std::size_t>>;

constexpr auto kPatience = std::chrono::seconds(60);
const std::vector<at::Device> kTwoCpus = {at::kCPU, at::kCPU};

ReplicaGroup group_of(FakeNccl& nccl, std::chrono::milliseconds timeout = kPatience) {
  return ReplicaGroup(kTwoCpus, std::make_unique<FakeReplicaLink>(nccl), timeout);
}

ReplicaRow row_of(double first, double second) { return {at::full({2}, first), at::full({2}, second)}; }

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const CollectiveTimeout& error) {
    return std::string("CollectiveTimeout: ") + error.what();
  } catch (const Unsupported& error) {
    return std::string("Unsupported: ") + error.what();
  } catch (const Error& error) {
    return std::string("Error: ") + error.what();
  }
  return {};
}

void wait_for_abort(const FakeNccl& nccl) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!nccl.is_aborted && std::chrono::steady_clock::now() < deadline) std::this_thread::sleep_for(1ms);
  ASSERT_TRUE(nccl.is_aborted) << "the watchdog did nothing";
}

TEST(ReplicaGroup, PutsSmallRowsTogether) {
  constexpr std::int64_t kMany = std::int64_t{24} << 20;
  EXPECT_EQ(plan_exchanges({}), Ranges());
  EXPECT_EQ(plan_exchanges({4, 8, 4}), (Ranges{{0, 3}}));
  EXPECT_EQ(plan_exchanges({4, kMany, kMany, 4}), (Ranges{{0, 2}, {2, 4}}));
  EXPECT_EQ(plan_exchanges({4 * kMany, 4, 4}), (Ranges{{0, 1}, {1, 3}})) << "one that is larger than a group";
  EXPECT_EQ(plan_exchanges(std::vector<std::int64_t>(300, 4)), (Ranges{{0, 256}, {256, 300}}));
}

TEST(ReplicaGroup, SendsAllRowsInOneOperationBetweenTheStreamsOfItsCaller) {
  FakeNccl nccl;
  nccl.polls_to_settle = 2;
  {
    auto group = group_of(nccl);
    const std::vector<ReplicaRow> rows = {row_of(1, 2), {at::ones({3, 1}), at::zeros({3, 1})}};
    group.broadcast(rows);
    EXPECT_TRUE(rows[0][1].equal(at::full({2}, 1.0)));
    EXPECT_TRUE(rows[1][1].equal(at::ones({3, 1})));
    group.broadcast({});
  }
  EXPECT_EQ(nccl.calls(),
            (std::vector<std::string>{"settled", "wait", "begin", "broadcast 0 [2]", "broadcast 1 [2]",
                                      "broadcast 0 [3, 1]", "broadcast 1 [3, 1]", "end", "settled", "hold", "close"}));
}

TEST(ReplicaGroup, WaitsForEachGroupToBeginAndOnceForAllToEnd) {
  FakeNccl nccl;
  auto group = group_of(nccl);
  std::vector<ReplicaRow> rows;
  for (int index = 0; index < 300; ++index) rows.push_back(row_of(index, 1));
  group.sum(rows);
  EXPECT_TRUE(rows[299][0].equal(at::full({2}, 300.0)));
  EXPECT_TRUE(rows[299][1].equal(at::full({2}, 1.0))) << "only the module's become sums";
  auto calls = nccl.calls();
  std::erase_if(calls, [](const std::string& call) { return call.starts_with("sum "); });
  EXPECT_EQ(calls, (std::vector<std::string>{"settled", "wait", "begin", "end", "settled", "begin", "end", "settled",
                                             "hold"}));
}

TEST(ReplicaGroup, TakesOnlyWhatLiesAlikeOnAllDevices) {
  FakeNccl nccl;
  const auto group = group_of(nccl);
  const at::Tensor tensor = at::ones({2, 3});
  EXPECT_TRUE(group.can_sum({tensor, tensor.clone()}));
  EXPECT_TRUE(group.can_sum({tensor.t(), tensor.t().clone(at::MemoryFormat::Preserve)})) << "dense, in another order";
  const std::vector<std::pair<std::string, ReplicaRow>> rows = {
      {"one for two", {tensor}},
      {"none", {at::Tensor(), tensor}},
      {"no gradient of a replica", {tensor, at::Tensor()}},
      {"another shape", {tensor, at::ones({3, 2})}},
      {"another dtype", {tensor, at::ones({2, 3}, at::kDouble)}},
      {"another order", {tensor, at::ones({3, 2}).t()}},
      {"another device", {tensor, tensor.to(at::kMeta)}},
      {"sparse", {tensor.to_sparse(), tensor.to_sparse()}},
      {"sparse there", {tensor, tensor.to_sparse()}},
      {"with gaps", {at::ones({4, 3}).slice(0, 0, 4, 2), at::ones({4, 3}).slice(0, 0, 4, 2)}},
      {"empty", {at::ones({0}), at::ones({0})}}};
  for (const auto& [name, row] : rows) EXPECT_FALSE(group.can_broadcast(row)) << name;
  const ReplicaRow counters = {at::ones({2}, at::kLong), at::ones({2}, at::kLong)};
  EXPECT_TRUE(group.can_broadcast(counters)) << "bytes";
  EXPECT_FALSE(group.can_sum(counters)) << "no gradient";
}

TEST(ReplicaGroup, SaysThatConnectingDidNotEnd) {
  FakeNccl nccl;
  nccl.polls_to_settle = -1;
  EXPECT_EQ(error_of([&] { group_of(nccl, 50ms); }),
            "CollectiveTimeout: NCCL between cpu and cpu: connecting did not end within 50 ms");
  EXPECT_TRUE(nccl.is_aborted);
}

TEST(ReplicaGroup, SaysThatAnExchangeDidNotBeginAndIsOfNoUseAfterwards) {
  FakeNccl nccl;
  auto group = group_of(nccl, 50ms);
  nccl.polls_to_settle = -1;
  const std::string expected =
      "CollectiveTimeout: NCCL between cpu and cpu: summing the replicas' gradients did not end within 50 ms";
  EXPECT_EQ(error_of([&] { group.sum({row_of(1, 2)}); }), expected);
  EXPECT_TRUE(nccl.is_aborted);
  const auto calls = nccl.calls();
  EXPECT_EQ(error_of([&] { group.broadcast({row_of(1, 2)}); }), expected);
  EXPECT_EQ(nccl.calls(), calls) << "nothing is asked of an aborted link";
}

TEST(ReplicaGroup, AbortsAnExchangeThatDoesNotEnd) {
  FakeNccl nccl;
  auto group = group_of(nccl, 200ms);
  nccl.ends = false;
  group.broadcast({row_of(1, 2)});  // the caller does not wait
  wait_for_abort(nccl);
  EXPECT_EQ(error_of([&] { group.sum({row_of(1, 2)}); }),
            "CollectiveTimeout: NCCL between cpu and cpu: sending the module to its replicas did not end within 200 "
            "ms");
}

TEST(ReplicaGroup, SaysWhatNcclNoticedByItself) {
  FakeNccl nccl;
  auto group = group_of(nccl);
  nccl.ends = false;
  nccl.has_error = true;
  group.sum({row_of(1, 2)});
  wait_for_abort(nccl);
  EXPECT_EQ(error_of([&] { group.sum({row_of(1, 2)}); }),
            "Error: NCCL between cpu and cpu: summing the replicas' gradients: a cable was cut");
}

TEST(ReplicaGroup, ClosesAGroupWhoseCallsFail) {
  FakeNccl nccl;
  auto group = group_of(nccl);
  nccl.refuses = true;
  EXPECT_EQ(error_of([&] { group.sum({row_of(1, 2)}); }), "Error: no memory");
  EXPECT_EQ(nccl.calls(), (std::vector<std::string>{"settled", "wait", "begin", "end", "abort"}));
  nccl.refuses = false;
  EXPECT_EQ(error_of([&] { group.sum({row_of(1, 2)}); }), "Error: no memory");
}

TEST(ReplicaGroup, EndsInOrderOnlyWhereAllWentWell) {
  FakeNccl well;
  group_of(well);
  EXPECT_EQ(well.calls(), (std::vector<std::string>{"settled", "close"})) << "without an exchange, too";
  FakeNccl failed;
  failed.refuses = true;
  {
    auto group = group_of(failed);
    EXPECT_EQ(error_of([&] { group.sum({row_of(1, 2)}); }), "Error: no memory");
  }
  EXPECT_EQ(failed.calls(), (std::vector<std::string>{"settled", "wait", "begin", "end", "abort"}));
}

std::vector<at::Device> gpus(std::initializer_list<int> indices) {
  std::vector<at::Device> devices;
  for (const int index : indices) devices.emplace_back(at::kCUDA, static_cast<c10::DeviceIndex>(index));
  return devices;
}

TEST(ReplicaConnection, IsNcclsWhereEachReplicaHasAGpu) {
  EXPECT_TRUE(are_for_nccl(gpus({0, 1}), ""));
  EXPECT_TRUE(are_for_nccl(gpus({3, 1, 0}), "auto"));
  EXPECT_TRUE(are_for_nccl(gpus({0, 1}), "nccl"));
  EXPECT_FALSE(are_for_nccl(gpus({0, 1}), "gloo")) << "copies through the CPU were asked for";
  EXPECT_FALSE(are_for_nccl(gpus({0}), "nccl")) << "nobody to exchange with";
  EXPECT_FALSE(are_for_nccl(gpus({0, 1, 0}), ""));
  EXPECT_FALSE(are_for_nccl(kTwoCpus, ""));
  EXPECT_EQ(error_of([] {
              are_for_nccl(gpus({1, 0, 1}), "nccl");
            }),
            "Unsupported: backend 'nccl' connects replicas with a GPU each, and cuda:1 has several: give each its own, "
            "or use backend 'auto'");
}

TEST(ReplicaConnection, GoesByCopiesWhereNcclIsMissingUnlessItWasAskedFor) {
  const auto missing = [](const std::vector<at::Device>&) -> std::unique_ptr<ReplicaLink> {
    throw Unsupported("liblrun_cuda.so does not load");
  };
  const auto found = connect_replicas(gpus({0, 1}), "", kPatience, missing);
  EXPECT_EQ(found.group, nullptr);
  EXPECT_EQ(found.warning,
            "replicas exchange parameters and gradients by copies between the GPUs, which is slower than NCCL: "
            "liblrun_cuda.so does not load");
  EXPECT_EQ(error_of([&] {
              connect_replicas(gpus({0, 1}), "nccl", kPatience, missing);
            }),
            "Unsupported: liblrun_cuda.so does not load");
  const auto none = connect_replicas(kTwoCpus, "", kPatience, missing);
  EXPECT_EQ(none.group, nullptr);
  EXPECT_EQ(none.warning, std::nullopt);
}

TEST(ReplicaConnection, ConnectsTheDevicesThatItWasGiven) {
  FakeNccl nccl;
  std::vector<at::Device> connected;
  const auto make = [&](const std::vector<at::Device>& devices) {
    connected = devices;
    return std::make_unique<FakeReplicaLink>(nccl);
  };
  const auto connection = connect_replicas(gpus({1, 0}), "auto", kPatience, make);
  EXPECT_NE(connection.group, nullptr);
  EXPECT_EQ(connection.warning, std::nullopt);
  EXPECT_EQ(connected, gpus({1, 0}));
  nccl.polls_to_settle = -1;
  EXPECT_EQ(error_of([&] {
              connect_replicas(gpus({0, 1}), "", 50ms, make);
            }),
            "CollectiveTimeout: NCCL between cuda:0 and cuda:1: connecting did not end within 50 ms");
}

}  // namespace
}  // namespace lrun::detail
