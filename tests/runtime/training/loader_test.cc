#include <gtest/gtest.h>
#include <lrun/batch.h>
#include <lrun/data_loader.h>
#include <torch/data/datasets/base.h>
#include <torch/data/example.h>

#include <chrono>
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>

#include "runtime/training/ranks.h"

namespace lrun {
namespace {

using test::run_sessions;

/// Sample i is the number i; a batch is a vector of them.
struct Numbers : torch::data::datasets::BatchDataset<Numbers, at::Tensor> {
  explicit Numbers(std::size_t size) : size_(size) {}
  at::Tensor get_batch(at::ArrayRef<std::size_t> indices) override {
    return at::tensor(std::vector<std::int64_t>(indices.begin(), indices.end()));
  }
  [[nodiscard]] std::optional<std::size_t> size() const override { return size_; }

  std::size_t size_;
};

template <class Loader>
std::vector<std::int64_t> read(Loader& loader) {
  std::vector<std::int64_t> samples;
  for (const at::Tensor& batch : loader) {
    for (std::int64_t index = 0; index < batch.size(0); ++index) samples.push_back(batch[index].item<std::int64_t>());
  }
  return samples;
}

TEST(Loader, GivesTheRanksDisjointSamplesAndTogetherTheWhole) {
  std::mutex mutex;
  std::map<std::int64_t, int> drawn;
  run_sessions(3, [&](Session& session) {
    auto loader = session.loader(Numbers(30), {.batch_size = 4});
    EXPECT_EQ(loader->samples(), 10U);
    EXPECT_EQ(loader->batches(), 3U);
    const auto samples = read(*loader);
    EXPECT_EQ(samples.size(), 10U);
    const std::lock_guard lock(mutex);
    for (const auto sample : samples) ++drawn[sample];
  });
  EXPECT_EQ(drawn.size(), 30U);
  for (const auto& [sample, count] : drawn) EXPECT_EQ(count, 1) << "sample " << sample;
}

TEST(Loader, ReadsEveryEpochInANewOrderThatCanBeGoneOnFrom) {
  run_sessions(2, [](Session& session) {
    for (const std::size_t workers : {std::size_t{0}, std::size_t{2}}) {
      auto loader = session.loader(Numbers(40), {.batch_size = 3, .workers = workers});
      std::vector<std::vector<std::int64_t>> epochs;
      for (std::size_t epoch = 0; epoch < 3; ++epoch) {
        epochs.push_back(read(*loader));
        EXPECT_EQ(loader->epoch(), epoch);
      }
      EXPECT_NE(epochs[0], epochs[1]);
      EXPECT_NE(epochs[1], epochs[2]);
      auto resumed = session.loader(Numbers(40), {.batch_size = 3, .workers = workers});
      resumed->set_epoch(2);
      EXPECT_EQ(read(*resumed), epochs[2]);
    }
  });
}

TEST(Loader, StartsANewEpochAfterOneThatWasLeft) {
  Session session({.world = World()});
  auto loader = session.loader(Numbers(100), {.batch_size = 1, .workers = 2});
  for (const at::Tensor& batch : *loader) {
    EXPECT_EQ(batch.size(0), 1);
    break;
  }
  EXPECT_EQ(read(*loader).size(), 100U);
}

/// Has no batch before `ready`.
struct Late : Numbers {
  explicit Late(std::shared_future<void> ready_to_read) : Numbers(10), ready(std::move(ready_to_read)) {}
  at::Tensor get_batch(at::ArrayRef<std::size_t> indices) override {
    ready.wait();
    return Numbers::get_batch(indices);
  }

  std::shared_future<void> ready;
};

TEST(Loader, ThrowsWhenABatchDoesNotComeInTime) {
  Session session({.world = World()});
  std::promise<void> ready;
  auto loader = session.loader(Late(ready.get_future()),
                               {.batch_size = 1, .workers = 1, .timeout = std::chrono::milliseconds(1)});
  EXPECT_THROW(read(*loader), c10::Error);
  ready.set_value();  // the loader's destructor waits for the thread
}

TEST(Loader, GivesEveryRankEverythingWhenTheSamplerIsOff) {
  run_sessions(
      2,
      [](Session& session) {
        EXPECT_EQ(session.loader(Numbers(9), {.batch_size = 2})->samples(), 9U);
        EXPECT_EQ(session.loader(Numbers(9), {.batch_size = 2, .distributed = true})->samples(), 5U);
      },
      [](int) { return SessionOptions{.use_distributed_sampler = false, .banner = false}; });
  run_sessions(2, [](Session& session) {
    auto loader = session.loader(Numbers(9), {.batch_size = 2, .distributed = false});
    EXPECT_EQ(read(*loader).size(), 9U);
  });
}

TEST(Loader, KeepsTheOrderUnlessItShuffles) {
  run_sessions(2, [](Session& session) {
    auto loader = session.loader(Numbers(6), {.batch_size = 2, .shuffle = false});
    const std::int64_t first = session.rank();
    EXPECT_EQ(read(*loader), (std::vector<std::int64_t>{first, first + 2, first + 4}));
  });
}

TEST(Loader, DropsTheLastBatchWhenAsked) {
  Session session({.world = World()});
  auto loader = session.loader(Numbers(10), {.batch_size = 4, .drop_last_batch = true});
  EXPECT_EQ(loader->batches(), 2U);
  EXPECT_EQ(read(*loader).size(), 8U);
}

TEST(Loader, RefusesABatchOfNothing) {
  Session session({.world = World()});
  EXPECT_THROW(session.loader(Numbers(10), {.batch_size = 0}), std::invalid_argument);
}

TEST(Loader, SaysOnceWhatTheBatchMeans) {
  testing::internal::CaptureStderr();
  run_sessions(
      2,
      [](Session& session) {
        session.loader(Numbers(10), {.batch_size = 7});
        session.loader(Numbers(10), {.batch_size = 9});
      },
      [](int) { return SessionOptions{.banner = true}; });
  const auto text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("effective batch size 14 (7 samples x 2 ranks)"), std::string::npos) << text;
  EXPECT_EQ(text.find("effective batch size 18"), std::string::npos) << text;
}

struct Custom {
  at::Tensor tensor;
  std::string text;
  [[nodiscard]] Custom to(at::Device device) const { return {tensor.to(device), text}; }
};

struct Labelled {
  at::Tensor data;
  std::string name;
};

// The meta device is on every machine.
TEST(ToDevice, MovesEveryTensorOfABatch) {
  const at::Device meta(at::kMeta);
  const auto one = at::ones({2});
  EXPECT_EQ(to_device(one, meta).device(), meta);
  EXPECT_EQ(to_device(std::vector<at::Tensor>{one, one}, meta)[1].device(), meta);
  EXPECT_EQ(to_device(std::array<at::Tensor, 2>{one, one}, meta)[1].device(), meta);
  EXPECT_EQ(to_device(std::pair(one, one), meta).second.device(), meta);
  EXPECT_EQ(std::get<2>(to_device(std::tuple(one, one, one), meta)).device(), meta);
  EXPECT_EQ(to_device(std::map<std::string, at::Tensor>{{"a", one}}, meta).at("a").device(), meta);
  const auto example = to_device(torch::data::Example<>(one, one), meta);
  EXPECT_EQ(example.data.device(), meta);
  EXPECT_EQ(example.target.device(), meta);
  EXPECT_EQ(to_device(torch::data::TensorExample(one), meta).data.device(), meta);
  EXPECT_EQ(to_device(std::vector<torch::data::Example<>>{{one, one}}, meta)[0].target.device(), meta);
  EXPECT_EQ(to_device(Custom{one, "text"}, meta).tensor.device(), meta);
  const auto labelled = to_device(Labelled{one, "name"}, meta);
  EXPECT_EQ(labelled.data.device(), meta);
  EXPECT_EQ(labelled.name, "name");
}

TEST(ToDevice, SharesWhatIsThereAlready) {
  const auto one = at::ones({2});
  EXPECT_TRUE(to_device(one, at::kCPU).is_same(one));
  EXPECT_FALSE(to_device(at::Tensor(), at::kMeta).defined());
}

}  // namespace
}  // namespace lrun
