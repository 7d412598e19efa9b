// The smallest training on many devices: a straight line through noisy points.
//
//   ddp_minimal                       one rank
//   lrun --devices 2 ddp_minimal      two ranks, each with half of the points
#include <lrun/lrun.h>
#include <torch/data/datasets/tensor.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <iostream>

using Points = torch::data::Example<>;  // data: (points, 1); target: (points, 1)

struct Line : torch::data::datasets::BatchDataset<Line, Points> {
  torch::Tensor x = torch::linspace(-1, 1, 1000).unsqueeze(1);
  torch::Tensor y = 3 * x + 1 + 0.1 * torch::randn_like(x);

  Points get_batch(c10::ArrayRef<std::size_t> indices) override {
    const torch::Tensor rows = torch::tensor(std::vector<std::int64_t>(indices.begin(), indices.end()));
    return {x.index_select(0, rows), y.index_select(0, rows)};
  }
  std::optional<std::size_t> size() const override { return 1000; }
};

int main() {
  lrun::Session session;  // joins the other ranks; alone: a world of one
  torch::manual_seed(session.seed());
  const auto loader = session.loader(Line(), {.batch_size = 20});
  const auto net = std::make_shared<torch::nn::LinearImpl>(1, 1);
  auto model = session.wrap(net);
  auto optimizer = session.optimizer<torch::optim::SGD>(model, 0.1);
  for (int epoch = 0; epoch < 10; ++epoch) {
    for (const Points& batch : *loader) {
      optimizer.zero_grad();
      model.train_step(
          batch, [](torch::nn::LinearImpl& replica, const Points& part) { return replica.forward(part.data); },
          [](const torch::Tensor& outputs, const Points& all) { return torch::mse_loss(outputs, all.target); });
      optimizer.step();
    }
  }
  if (session.is_rank_zero()) {
    std::cout << "y = " << net->weight.item<float>() << " x + " << net->bias.item<float>() << '\n';
  }
}
