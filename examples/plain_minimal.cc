// The training of ddp_minimal.cc in one process, with LibTorch alone. The README shows the difference of the two.
#include <torch/data/dataloader.h>
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
  torch::manual_seed(0);
  const auto loader = torch::data::make_data_loader(Line(), 20);
  const auto net = std::make_shared<torch::nn::LinearImpl>(1, 1);
  torch::optim::SGD optimizer(net->parameters(), 0.1);
  for (int epoch = 0; epoch < 10; ++epoch) {
    for (const Points& batch : *loader) {
      optimizer.zero_grad();
      torch::mse_loss(net->forward(batch.data), batch.target).backward();
      optimizer.step();
    }
  }
  std::cout << "y = " << net->weight.item<float>() << " x + " << net->bias.item<float>() << '\n';
}
