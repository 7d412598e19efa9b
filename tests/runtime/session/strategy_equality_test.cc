// Every strategy on every layout trains the parameters of one process on the whole batch: tests/runtime/README.md.
#include <gtest/gtest.h>
#include <lrun/error.h>
#include <lrun/session.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "runtime/support/equality.h"
#include "runtime/support/layout.h"

namespace lrun::detail {
namespace {

using test::Layout;
using namespace test::equality;  // NOLINT: the vocabulary of these tests

template <class Net>
std::vector<std::shared_ptr<Net>> train(const Layout& layout, const std::vector<Batch>& batches, at::ScalarType dtype) {
  std::vector<std::shared_ptr<Net>> nets;
  for (int rank = 0; rank < layout.world_size(); ++rank) {
    nets.push_back(make_net<Net>(static_cast<std::uint64_t>(rank) + 1, dtype));  // only rank 0's values count
  }
  test::run_layout(layout, [&](Session& session) {
    train_process(session, nets[static_cast<std::size_t>(session.rank())], batches);
  });
  return nets;
}

template <class Net>
void expect_equality(const Layout& layout) {
  at::set_num_threads(1);
  for (const auto dtype : {at::kDouble, at::kFloat}) {
    const auto batches = make_data<Net>(dtype);
    const auto alone = make_net<Net>(1, dtype);
    train_alone(*alone, batches, layout.devices * layout.nodes);
    const auto nets = train<Net>(layout, batches, dtype);
    if (dtype == at::kDouble) {
      EXPECT_LE(largest_difference(*nets[0], *alone), 1e-6);
    } else {
      EXPECT_LE(normwise_difference(*nets[0], *alone), Net::kFloatLimit);
    }
    for (const auto& net : nets) {
      for (const auto& item : net->named_parameters()) {
        EXPECT_TRUE(item.value().equal(nets[0]->named_parameters()[item.key()])) << item.key() << " differs";
      }
    }
  }
}

constexpr int kMostDevices = 4;
constexpr int kMostNodes = 2;

/// Of one strategy on one number of nodes: all numbers of devices.
class StrategyEquality : public testing::TestWithParam<Layout> {
 protected:
  template <class Net>
  void expect_on_all_devices() {
    Layout layout = GetParam();
    for (layout.devices = 1; layout.devices <= kMostDevices; ++layout.devices) {
      const testing::ScopedTrace trace(__FILE__, __LINE__, std::to_string(layout.devices) + " devices a node");
      expect_equality<Net>(layout);
    }
  }
};

TEST_P(StrategyEquality, OfAnMlp) { expect_on_all_devices<Mlp>(); }
TEST_P(StrategyEquality, OfACnnWithBatchNorm) { expect_on_all_devices<BatchNormCnn>(); }
TEST_P(StrategyEquality, OfAnEmbeddingWithSparseGradients) { expect_on_all_devices<SparseEmbedding>(); }

const std::vector<std::string> kStrategies = {"ddp", "dp", "ddp2", "ddp_sharded"};

bool is_refused(const Layout& layout) { return layout.strategy == "dp" && layout.nodes > 1; }

std::vector<Layout> layouts() {
  std::vector<Layout> result;
  for (const auto& strategy : kStrategies) {
    for (int nodes = 1; nodes <= kMostNodes; ++nodes) result.push_back({strategy, kMostDevices, nodes});
  }
  std::erase_if(result, is_refused);
  return result;
}

INSTANTIATE_TEST_SUITE_P(Layouts, StrategyEquality, testing::ValuesIn(layouts()), [](const auto& layout) {
  return layout.param.strategy + "On" + std::to_string(layout.param.nodes) + "Nodes";
});

TEST(StrategyEquality, OfDpOnTwoNodesIsRefused) {
  Layout layout{"dp", 1, kMostNodes};
  for (layout.devices = 1; layout.devices <= kMostDevices; ++layout.devices) {
    try {
      const Session session(test::options_of(layout, 0));
      ADD_FAILURE() << "accepted on " << layout.devices << " devices";
    } catch (const Unsupported& error) {
      EXPECT_STREQ(error.what(),
                   "strategy 'dp' is one process on one node, and there are 2 ranks: use 'ddp2' (dp inside every node) "
                   "or 'ddp'");
    }
  }
}

/// The table of the README, from what is run here.
std::string table() {
  std::string text =
      "| strategy | devices a node | nodes | MLP | CNN with batch norm | embedding, sparse |\n"
      "|---|---|---|---|---|---|\n";
  for (const auto& strategy : kStrategies) {
    for (int nodes = 1; nodes <= kMostNodes; ++nodes) {
      const std::string cell = is_refused({strategy, 1, nodes}) ? "refused" : "equal";
      text += "| " + strategy + " | 1, 2, 3, 4 | " + std::to_string(nodes) + " | " + cell + " | " + cell + " | " +
              cell + " |\n";
    }
  }
  return text;
}

TEST(StrategyEquality, IsWhatTheReadmeSays) {
  std::ifstream file(LRUN_TEST_SOURCE "/../README.md");
  const std::string readme{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  EXPECT_NE(readme.find(table()), std::string::npos) << "tests/runtime/README.md should have:\n" << table();
}

}  // namespace
}  // namespace lrun::detail
