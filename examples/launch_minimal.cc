// A program that starts its own ranks: ddp_minimal's straight line, trained inside of a function.
//
//   launch_minimal 2                                        two ranks, started by the program
//   lrun --devices 3 --strategy ddp_spawn launch_minimal    three, as many as lrun gives the program devices
//   lrun --devices 2 launch_minimal                         two, started by lrun: launch() stays in each of them
#include <lrun/lrun.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <cstdlib>
#include <iostream>

/// What a rank does, as under lrun. \return the loss of the last step over all ranks.
double train(const std::shared_ptr<torch::nn::LinearImpl>& net) {
  lrun::Session session;
  const torch::Tensor x =
      torch::linspace(-1, 1, 1000).unsqueeze(1).slice(0, session.rank(), 1000, session.world_size());
  auto model = session.wrap(net);
  auto optimizer = session.optimizer<torch::optim::SGD>(model, 0.1);
  torch::Tensor loss;
  for (int step = 0; step < 200; ++step) {
    optimizer.zero_grad();
    loss = model.train_step(x, [](torch::nn::LinearImpl& replica, const torch::Tensor& part) {
      return torch::mse_loss(replica.forward(part), 3 * part + 1);
    });
    optimizer.step();
  }
  return session.all_reduce(loss.item<double>());
}

int main(int count, char** arguments) {
  const auto net = std::make_shared<torch::nn::LinearImpl>(1, 1);
  lrun::LaunchOptions options;
  options.module = net;  // gets rank 0's parameters
  if (count > 1) options.devices = std::atoi(arguments[1]);
  try {
    const double loss = lrun::launch([&] { return train(net); }, options);
    std::cout << "y = " << net->weight.item<float>() << " x + " << net->bias.item<float>()
              << (loss < 1e-6 ? ", and no loss\n" : ", and a loss\n");
  } catch (const lrun::WorkersFailed& error) {
    std::cerr << error.what() << '\n';
    return error.exit_code();
  }
}
