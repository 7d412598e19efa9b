// Every strategy on one GPU is equal to one process on the CPU: ranks alone over NCCL, ranks that share the GPU by
// copies (gloo, shm) or over NCCL as ranks of two hosts do, and replicas.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lrun/session.h>

#include <cmath>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "runtime/collectives/registry.h"
#include "runtime/cuda/gpus.h"
#include "runtime/cuda/on_gpu.h"
#include "runtime/support/documented_evaluation.h"
#include "runtime/support/equality.h"

namespace lrun::detail::testing {
namespace {

using namespace test::equality;  // NOLINT: the vocabulary of these tests
using ::testing::Each;

struct Layout {
  std::string name;
  std::string strategy;
  int ranks;
  std::string backend;
  int replicas = 1;       ///< of a rank
  bool on_hosts = false;  ///< each rank is a host, as NCCL and the session take it

  [[nodiscard]] int parts() const { return ranks * replicas; }
};

void PrintTo(const Layout& layout, std::ostream* out) { *out << layout.name; }

SessionOptions options_of(const Layout& layout, int rank, const GroupOptions& group) {
  SessionOptions options = options_of_one(layout.strategy, layout.replicas);
  options.world->rank = rank;
  options.world->world_size = layout.ranks;
  options.world->local_rank = layout.on_hosts ? 0 : rank;
  options.world->local_world_size = layout.on_hosts ? 1 : layout.ranks;
  options.world->node_rank = layout.on_hosts ? rank : 0;
  options.world->nodes = layout.on_hosts ? layout.ranks : 1;
  options.connect = [=](const World&) {
    GroupOptions own = group;
    own.rank = rank;
    return make_collectives(layout.backend, own);
  };
  return options;
}

template <class Net>
std::shared_ptr<Net> train_here(Session& session, at::ScalarType dtype) {
  const auto net = make_net<Net>(static_cast<std::uint64_t>(session.rank()) + 1, dtype);  // only rank 0's values count
  train_process(session, net, make_data<Net>(dtype));
  for (const at::Tensor& parameter : net->parameters()) {
    require(parameter.device() == session.device(), "a parameter is on " + parameter.device().str());
  }
  return net;
}

template <class Net>
void require_equality(Session& session, const Layout& layout, const std::string& name) {
  for (const at::ScalarType dtype : {at::kDouble, at::kFloat}) {
    const auto alone = make_net<Net>(1, dtype);
    train_alone(*alone, make_data<Net>(dtype), layout.parts());
    const auto net = train_here<Net>(session, dtype);
    // The kernels of a GPU round differently in every one of the 20 steps.
    const double limit = dtype == at::kDouble ? 1e-6 : std::max(1e-5, Net::kFloatLimit);
    const double difference = normwise_difference(*net, *alone);
    require(difference < limit, name + " in " + c10::toString(dtype) + " differs by " + std::to_string(difference));
  }
}

class StrategyOnOneGpu : public ::testing::TestWithParam<Layout> {};

TEST_P(StrategyOnOneGpu, EqualsOneProcessOnTheCpu) {
  if (gpus() < 1) GTEST_SKIP() << "no /dev/nvidia0";
  const Layout& layout = GetParam();
  const GroupOptions group = group_of(0, layout.ranks, "strategy-" + layout.name, std::chrono::seconds(60));
  const auto errors = run_ranks_apart(layout.ranks, [&](int rank) {
    if (layout.on_hosts) pretend_to_be_host(rank);
    Session session(options_of(layout, rank, group));
    switch_tf32_off();
    require_equality<Mlp>(session, layout, "the MLP");
    require_equality<BatchNormCnn>(session, layout, "the CNN");
    require_equality<SparseEmbedding>(session, layout, "the embedding");
  });
  EXPECT_THAT(errors, Each(std::string()));
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, StrategyOnOneGpu,
    ::testing::Values(Layout{"ddp_alone", "ddp", 1, "nccl"}, Layout{"sharded_alone", "ddp_sharded", 1, "nccl"},
                      Layout{"ddp_gloo", "ddp", 2, "gloo"}, Layout{"ddp_shm", "ddp", 2, "shm"},
                      Layout{"sharded_gloo", "ddp_sharded", 2, "gloo"}, Layout{"sharded_shm", "ddp_sharded", 2, "shm"},
                      Layout{"ddp_nccl", "ddp", 2, "nccl", 1, true},
                      Layout{"sharded_nccl", "ddp_sharded", 2, "nccl", 1, true},
                      Layout{"ddp2_alone", "ddp2", 1, "nccl", 2}, Layout{"ddp2_gloo", "ddp2", 2, "gloo", 2, true},
                      Layout{"ddp2_nccl", "ddp2", 2, "nccl", 2, true}),
    [](const auto& layout) { return layout.param.name; });

/// The same training without lrun, on the same GPU.
template <class Net>
std::shared_ptr<Net> train_without_lrun(at::ScalarType dtype) {
  auto net = make_net<Net>(1, dtype);
  std::vector<Batch> batches = make_data<Net>(dtype);
  net->to(at::Device("cuda:0"));
  for (Batch& batch : batches) batch = {batch.data.to(at::Device("cuda:0")), batch.target.to(at::Device("cuda:0"))};
  train_alone(*net, batches, 1);
  return net;
}

TEST(Bfloat16OnOneGpu, TrainsAsALoopWithoutLrun) {
  if (gpus() < 1) GTEST_SKIP() << "no /dev/nvidia0";
  for (const Layout& layout : {Layout{"ddp", "ddp", 1, "nccl"}, Layout{"ddp", "ddp", 2, "nccl", 1, true},
                               Layout{"ddp_sharded", "ddp_sharded", 2, "nccl", 1, true}}) {
    const std::string name = "bfloat16-" + layout.strategy + std::to_string(layout.ranks);
    const GroupOptions group = group_of(0, layout.ranks, name, std::chrono::seconds(60));
    const auto errors = run_ranks_apart(layout.ranks, [&](int rank) {
      if (layout.on_hosts) pretend_to_be_host(rank);
      Session session(options_of(layout, rank, group));
      const double difference =
          normwise_difference(*train_here<Mlp>(session, at::kBFloat16), *train_without_lrun<Mlp>(at::kBFloat16));
      // Alone it is the same arithmetic. The mean of two ranks' gradients is rounded to 8 bits once more.
      const double limit = layout.ranks == 1 ? 1e-6 : 2e-2;
      require(difference < limit, "differs by " + std::to_string(difference));
    });
    EXPECT_THAT(errors, Each(std::string())) << name;
  }
}

TEST(EvaluationOnOneGpu, EqualsOneProcessOnTheCpuInItsExampleAlsoOnARankWithoutSamples) {
  if (gpus() < 1) GTEST_SKIP() << "no /dev/nvidia0";
  for (const std::size_t samples : {1UL, 7UL}) {
    const Layout layout{"evaluation" + std::to_string(samples), "ddp", 2, "nccl", 1, true};
    const GroupOptions group = group_of(0, layout.ranks, layout.name, std::chrono::seconds(60));
    const auto errors = run_ranks_apart(layout.ranks, [&](int rank) {
      pretend_to_be_host(rank);
      Session session(options_of(layout, rank, group));
      switch_tf32_off();
      const test::LabelledWaves data(samples);
      const test::Evaluated actual = test::evaluate_as_documented(session, data);
      const test::Evaluated expected = test::evaluate_alone(data);
      require(actual.predictions.device() == session.device(),
              "predictions are on " + actual.predictions.device().str());
      require(at::allclose(actual.predictions.cpu(), expected.predictions, 1e-5, 1e-6), "predictions differ");
      require(std::abs(actual.mean - expected.mean) < 1e-5, "the mean is " + std::to_string(actual.mean));
    });
    EXPECT_THAT(errors, Each(std::string()));
  }
}

TEST(DdpOnOneGpu, SaysAtOnceThatARankFailedAndLeft) {
  if (gpus() < 1) GTEST_SKIP() << "no /dev/nvidia0";
  const Layout layout{"leaving", "ddp", 2, "nccl", 1, true};
  const GroupOptions group = group_of(0, layout.ranks, layout.name, std::chrono::seconds(60));
  const auto begin = std::chrono::steady_clock::now();
  const auto errors = run_ranks_apart(layout.ranks, [&](int rank) {
    pretend_to_be_host(rank);
    Session session(options_of(layout, rank, group));
    train_here<Mlp>(session, at::kFloat);
    require(rank == 0, "the program's own error");
    train_here<Mlp>(session, at::kFloat);
  });
  EXPECT_THAT(errors[0], ::testing::MatchesRegex("PeerLost: rank 1 left the group before .* #[0-9]+"));
  EXPECT_EQ(errors[1], "error: the program's own error");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

}  // namespace
}  // namespace lrun::detail::testing
