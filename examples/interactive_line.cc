// What an interactive interpreter of C++ calls to train on several ranks: a library, because clang-repl can call
// LibTorch's code and not compile all of it. interactive_line.repl is a session with it.
#include <lrun/lrun.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <cstdio>

namespace {

void train(const std::shared_ptr<torch::nn::LinearImpl>& net) {
  lrun::Session session;
  const torch::Tensor x =
      torch::linspace(-1, 1, 1000).unsqueeze(1).slice(0, session.rank(), 1000, session.world_size());
  auto model = session.wrap(net);
  auto optimizer = session.optimizer<torch::optim::SGD>(model, 0.1);
  for (int step = 0; step < 200; ++step) {
    optimizer.zero_grad();
    model.train_step(x, [](torch::nn::LinearImpl& replica, const torch::Tensor& part) {
      return torch::mse_loss(replica.forward(part), 3 * part + 1);
    });
    optimizer.step();
  }
}

}  // namespace

/// Trains a straight line on `ranks` ranks and prints it. \param strategy  nullptr: as launch() chooses.
/// \return 0, or 1 after one line that says why not.
extern "C" [[gnu::visibility("default")]] int train_line(int ranks, const char* strategy) {
  const auto net = std::make_shared<torch::nn::LinearImpl>(1, 1);
  lrun::LaunchOptions options;
  options.devices = ranks;
  options.module = net;
  if (strategy != nullptr) options.strategy = strategy;
  try {
    lrun::launch([&] { train(net); }, options);
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
  std::printf("y = %g x + %g\n", net->weight.item<double>(), net->bias.item<double>());
  return 0;
}
