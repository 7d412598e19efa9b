#include <gtest/gtest.h>
#include <lrun/batch.h>
#include <lrun/data_loader.h>
#include <torch/data/datasets/base.h>
#include <torch/data/datasets/stateful.h>
#include <torch/data/example.h>

#include <chrono>
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>

#include "runtime/support/thread_ranks.h"

namespace lrun::detail {
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

/// The samples that the ranks of a world read of the epoch at `from`: all of it, or `batches` each, where the loop is
/// left.
DataPosition read_on(int world_size, std::size_t workers, DataPosition from, std::optional<std::size_t> batches,
                     std::map<std::int64_t, int>& taken) {
  std::mutex mutex;
  DataPosition position;
  run_sessions(world_size, [&](Session& session) {
    auto loader =
        session.loader(Numbers(61), {.batch_size = 3, .workers = workers, .remainder = Remainder::kUneven, .seed = 4});
    loader->set_position(from);
    std::size_t read = 0;
    for (const at::Tensor& batch : *loader) {
      const std::lock_guard lock(mutex);
      for (std::int64_t index = 0; index < batch.size(0); ++index) ++taken[batch[index].item<std::int64_t>()];
      if (++read == batches) break;
    }
    const std::lock_guard lock(mutex);
    if (session.is_rank_zero()) position = loader->position();
  });
  return position;
}

TEST(Loader, GoesOnWithinAnEpochWithAnotherNumberOfRanks) {
  for (const std::size_t workers : {std::size_t{0}, std::size_t{2}}) {
    std::map<std::int64_t, int> taken;
    DataPosition position = read_on(3, workers, {5, 0}, 4, taken);
    EXPECT_EQ(position, (DataPosition{5, 36})) << "what was read ahead counts, with " << workers << " threads";
    position = read_on(2, workers, position, 1, taken);
    EXPECT_EQ(position, (DataPosition{5, 42}));
    position = read_on(4, workers, position, std::nullopt, taken);
    EXPECT_EQ(position, (DataPosition{6, 0}));
    EXPECT_EQ(taken.size(), 61U);
    for (const auto& [sample, times] : taken) EXPECT_EQ(times, 1) << "sample " << sample;
  }
}

TEST(Loader, EvaluatesEverySampleOnceWhateverTheWorldSize) {
  for (const int world_size : {1, 2, 3, 4}) {
    run_sessions(world_size, [](Session& session) {
      auto loader = session.loader(Numbers(103), {.batch_size = 5, .shuffle = false, .remainder = Remainder::kUneven});
      double sum = 0;
      double samples = 0;
      for (const at::Tensor& batch : *loader) {
        sum += batch.sum().item<double>();
        samples += static_cast<double>(batch.size(0));
      }
      EXPECT_EQ(session.all_reduce(samples, ReduceOp::kSum), 103);
      EXPECT_EQ(session.all_reduce(sum, ReduceOp::kSum), 103 * 102 / 2);
    });
  }
}

TEST(Loader, LeavesTheUsersOwnSamplerAloneWhenAsked) {
  run_sessions(2, [](Session& session) {
    const std::vector<std::size_t> mine(4, static_cast<std::size_t>(session.rank()));
    const auto order = [mine](std::size_t) { return mine; };
    auto loader = session.loader(Numbers(9), {.batch_size = 3, .distributed = false, .order = order});
    EXPECT_EQ(read(*loader), std::vector<std::int64_t>(4, session.rank()));
    const auto shared = [](std::size_t) { return std::vector<std::size_t>{8, 7, 6, 5}; };
    auto split = session.loader(Numbers(9), {.batch_size = 3, .order = shared});
    EXPECT_EQ(read(*split), (std::vector<std::int64_t>{8 - session.rank(), 6 - session.rank()}));
  });
}

/// Gives `left` batches, and then no more.
struct Stream : torch::data::datasets::StatefulDataset<Stream, at::Tensor> {
  explicit Stream(std::int64_t batches) : all(batches) {}
  c10::optional<at::Tensor> get_batch(std::size_t size) override {
    if (left == 0) return std::nullopt;
    return at::full({static_cast<std::int64_t>(size)}, --left, at::kLong);
  }
  [[nodiscard]] c10::optional<std::size_t> size() const override { return std::nullopt; }
  void reset() override { left = all; }
  void save(torch::serialize::OutputArchive&) const override {}
  void load(torch::serialize::InputArchive&) override {}

  std::int64_t all;
  std::int64_t left = 0;
};

TEST(Loader, LeavesIterableDataAlone) {
  run_sessions(2, [](Session& session) {
    auto loader = session.loader(Stream(2 + session.rank()), {.batch_size = 2});
    EXPECT_EQ(read(*loader).size(), 4U + 2U * static_cast<std::size_t>(session.rank()));
    EXPECT_EQ(read(*loader).size(), 4U + 2U * static_cast<std::size_t>(session.rank())) << "the second epoch";
    EXPECT_THROW(session.loader(Stream(1), {.subset = std::vector<std::size_t>{0}}), std::invalid_argument);
  });
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
}  // namespace lrun::detail
