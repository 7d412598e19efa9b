#include "training_state.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include "errors.h"
#include "example_files.h"

namespace fashion_mnist {
namespace {

struct Training {
  torch::nn::Linear network{3, 2};
  torch::optim::SGD optimizer{network->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9)};

  void step(std::int64_t i) {
    optimizer.zero_grad();
    network->forward(torch::full({4, 3}, static_cast<double>(i + 1))).square().sum().backward();
    optimizer.step();
  }
};

TEST(TrainingState, ContinuesAsIfThereHadBeenNoStop) {
  Training whole;
  for (std::int64_t i = 0; i < 2; ++i) whole.step(i);
  const std::string bytes = pack_state(2, *whole.network, whole.optimizer);
  whole.step(2);

  Training resumed;
  TrainingState checkpoint(bytes);
  EXPECT_EQ(checkpoint.epoch(), 2);
  checkpoint.load_into(*resumed.network);
  checkpoint.load_into(resumed.optimizer);
  resumed.step(2);

  EXPECT_TRUE(torch::equal(resumed.network->weight, whole.network->weight));
  EXPECT_TRUE(torch::equal(resumed.network->bias, whole.network->bias));
}

TEST(TrainingState, IsRefusedByAnotherNetwork) {
  Training training;
  TrainingState checkpoint(pack_state(1, *training.network, training.optimizer));
  torch::nn::Bilinear other(3, 2, 1);
  other->register_parameter("more", torch::zeros(1));
  EXPECT_EQ(text_of<DataError>([&] { checkpoint.load_into(*other); }), "the checkpoint is of another network");
}

TEST(TrainingState, IsRefusedWhenItIsSomethingElse) {
  EXPECT_EQ(text_of<DataError>([] { TrainingState("no archive"); }),
            "the checkpoint holds something else than a training");
}

}  // namespace
}  // namespace fashion_mnist
