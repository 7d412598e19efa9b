// A connection of your own: SessionOptions::connect returns the group that a rank joins. Here ranks are threads of one
// program, so it needs no launcher, no store and no port; a scheduler's own way to meet would stand in the same place.
//
//   own_connection          two ranks
//   own_connection 4
#include <ATen/Parallel.h>
#include <lrun/lrun.h>
#include <lrun/thread_group.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

void train(int rank, int ranks, std::unique_ptr<lrun::Collectives> group) {
  lrun::SessionOptions options;
  options.world.emplace();
  options.world->rank = options.world->local_rank = rank;
  options.world->world_size = options.world->local_world_size = ranks;
  options.connect = [&](const lrun::World&) { return std::move(group); };
  lrun::Session session(options);

  const auto net = std::make_shared<torch::nn::LinearImpl>(1, 1);
  auto model = session.wrap(net);
  auto optimizer = session.optimizer<torch::optim::SGD>(model, 0.2);
  const torch::Tensor all = torch::linspace(-1, 1, 120).unsqueeze(1);
  const torch::Tensor mine = all.chunk(ranks)[static_cast<std::size_t>(rank)];
  for (int step = 0; step < 200; ++step) {
    optimizer.zero_grad();
    model.train_step(mine, [](torch::nn::LinearImpl& replica, const torch::Tensor& x) {
      return torch::mse_loss(replica.forward(x), 3 * x + 1);
    });
    optimizer.step();
  }
  if (session.is_rank_zero()) std::printf("y = %.3f x + %.3f\n", net->weight.item<double>(), net->bias.item<double>());
}

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 2;
  at::set_num_threads(1);
  auto groups = lrun::make_thread_group(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back(train, rank, ranks, std::move(groups[static_cast<std::size_t>(rank)]));
  }
  for (auto& thread : threads) thread.join();
}
