// bench_runtime_first_step FILE: joins the group, sums over it, makes one training step, and writes when each was done
// (CLOCK_MONOTONIC, seconds) to FILE.RANK. first_step.py is the same with torch in Python.
#include <ATen/ATen.h>
#include <lrun/session.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <ctime>
#include <fstream>
#include <memory>
#include <string>

namespace {

struct Net : torch::nn::Module {
  at::Tensor forward(const at::Tensor& images) { return last(at::relu(hidden(images.flatten(1)))); }

  torch::nn::Linear hidden = register_module("hidden", torch::nn::Linear(784, 256));
  torch::nn::Linear last = register_module("last", torch::nn::Linear(256, 10));
};

double now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count != 2) return 2;
  lrun::Session session({.banner = false});
  const double sum = session.all_reduce(1.0, lrun::ReduceOp::kSum);
  const double summed = now();
  if (sum != session.world_size()) return 1;

  auto model = session.wrap(std::make_shared<Net>());
  auto optimizer = session.optimizer<torch::optim::SGD>(model, 0.1);
  const at::Tensor labels = at::randint(10, {64}, at::kLong);
  model.train_step(at::randn({64, 1, 28, 28}), [&](Net& net, const at::Tensor& images) {
    return at::cross_entropy_loss(net.forward(images), labels);
  });
  optimizer.step();
  const double stepped = now();

  std::ofstream file(arguments[1] + std::string(".") + std::to_string(session.rank()));
  file.precision(6);
  file << std::fixed << "all_reduce " << summed << "\nstep " << stepped << '\n';
  return file.flush() ? 0 : 1;
}
