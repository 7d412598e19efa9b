#include "training.h"

#include <ATen/Functions.h>

#include <chrono>

namespace fashion_mnist {
namespace {

torch::Tensor forward(Network& network, const Batch& part) { return network.forward(part.data); }

torch::Tensor loss_of(const torch::Tensor& outputs, const Batch& batch) {
  return torch::nll_loss(outputs, batch.target);
}

torch::Tensor count_right(const torch::Tensor& outputs, const Batch& batch) {
  return outputs.argmax(1).eq(batch.target).sum();
}

}  // namespace

EpochResult train_epoch(lrun::Session& session, lrun::Model<Network>& model, Loader& loader,
                        lrun::Optimizer<torch::optim::SGD>& optimizer, ProgressBar& bar) {
  const auto start = std::chrono::steady_clock::now();
  model->train();
  double loss_sum = 0;
  double images = 0;
  std::int64_t step = 0;
  EpochResult result;
  for (const Batch& batch : loader) {
    result.epoch = static_cast<std::int64_t>(loader.epoch()) + 1;
    optimizer.zero_grad();
    const double loss = model.train_step(batch, forward, loss_of).item<double>();
    optimizer.step();

    const auto size = static_cast<double>(batch.target.size(0));
    loss_sum += loss * size;
    images += size;
    bar.show(result.epoch, ++step, static_cast<std::int64_t>(loader.batches()), loss);
  }
  images = session.all_reduce(images, lrun::ReduceOp::kSum);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  result.loss = session.all_reduce(loss_sum, lrun::ReduceOp::kSum) / images;
  result.images_per_s = images / elapsed.count();
  return result;
}

double accuracy(lrun::Session& session, lrun::Model<Network>& model, Loader& loader) {
  model->eval();
  double right = 0;
  double images = 0;
  for (const Batch& batch : loader) {
    right += model.eval_step(batch, forward, count_right).item<double>();
    images += static_cast<double>(batch.target.size(0));
  }
  // Shares may differ by an image: sum first, then divide.
  return session.all_reduce(right, lrun::ReduceOp::kSum) / session.all_reduce(images, lrun::ReduceOp::kSum);
}

}  // namespace fashion_mnist
