#include <lrun/lrun.h>
#include <torch/torch.h>

#include <iostream>

int main() {
  lrun::Session session;  // joins the group that lrun made; alone: a world of one
  torch::manual_seed(session.seed());
  auto model = session.wrap(torch::nn::Linear(8, 1));  // every rank gets rank 0's parameters
  auto optimizer = session.optimizer<torch::optim::SGD>(model, 0.1);
  torch::manual_seed(session.rank_seed());  // other data on every rank
  torch::Tensor loss;
  for (int step = 0; step < 20; ++step) {
    optimizer.zero_grad();
    loss = model.train_step(torch::randn({16, 8}), [](torch::nn::LinearImpl& net, const torch::Tensor& batch) {
      return net.forward(batch).pow(2).mean();  // gradients are averaged over all ranks while backward runs
    });
    optimizer.step();
  }
  std::cout << "rank " << session.rank() << " of " << session.world_size() << ": loss " << loss.item<float>() << '\n';
}
