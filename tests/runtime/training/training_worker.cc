// A training program as users write them, for process_test.cc: public headers only, no word about ranks.
//
// usage: training_worker train | die | mismatch
//   train     20 steps; rank 0 prints the parameters, one line each, as hexadecimal doubles
//   die       rank 1 is killed before its fifth step
//   mismatch  rank 1 has a wider layer
// Ends with 7 and the error's text on stdout when a session fails.
#include <lrun/lrun.h>
#include <signal.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <cstdio>
#include <string>

namespace {

constexpr std::int64_t kGlobalBatch = 12;

struct Net : torch::nn::Module {
  explicit Net(std::int64_t width) {
    first = register_module("first", torch::nn::Linear(8, width));
    second = register_module("second", torch::nn::Linear(width, 3));
    to(at::kDouble);
  }
  at::Tensor forward(const at::Tensor& input) { return second(at::tanh(first(input))); }
  torch::nn::Linear first{nullptr}, second{nullptr};
};

/// The part of the whole batch of this step that is this rank's.
std::pair<at::Tensor, at::Tensor> batch_of(int step, const lrun::Session& session) {
  const auto wave = [&](double frequency, std::int64_t columns) {
    return at::sin(at::arange(kGlobalBatch * columns, at::kDouble) * (frequency + 0.01 * step)).view({-1, columns});
  };
  const std::int64_t part = kGlobalBatch / session.world_size();
  return {wave(0.7, 8).narrow(0, session.rank() * part, part), wave(1.3, 3).narrow(0, session.rank() * part, part)};
}

void print_parameters(const Net& net) {
  for (const auto& item : net.named_parameters()) {
    std::printf("%s", item.key().c_str());
    const auto flat = item.value().detach().flatten();
    for (std::int64_t index = 0; index < flat.numel(); ++index) std::printf(" %a", flat[index].item<double>());
    std::printf("\n");
  }
}

int train(const std::string& mode) {
  lrun::Session session({.timeout = std::chrono::seconds(30)});
  torch::manual_seed(session.seed() + static_cast<std::uint64_t>(session.rank()));  // wrap makes them equal
  auto net = std::make_shared<Net>(mode == "mismatch" && session.rank() == 1 ? 17 : 16);
  auto model = session.wrap(net);
  auto optimizer = session.optimizer<torch::optim::SGD>(model, 0.1);
  for (int step = 0; step < 20; ++step) {
    if (mode == "die" && session.rank() == 1 && step == 4) ::raise(SIGKILL);
    optimizer.zero_grad();
    model.train_step(
        batch_of(step, session),
        [](Net& replica, const std::pair<at::Tensor, at::Tensor>& part) { return replica.forward(part.first); },
        [](const at::Tensor& outputs, const auto& full) { return at::mse_loss(outputs, full.second); });
    optimizer.step();
  }
  for (const auto& parameter : net->parameters()) {
    if (!session.all_reduce(parameter, lrun::ReduceOp::kMax).equal(parameter)) {
      std::printf("rank %d differs\n", session.rank());
      return 1;
    }
  }
  if (session.is_rank_zero()) print_parameters(*net);
  return 0;
}

}  // namespace

int main(int, char** arguments) {
  try {
    return train(arguments[1]);
  } catch (const lrun::Error& error) {
    std::printf("%s\n", error.what());
    return 7;
  }
}
