#pragma once

#include <ATen/ATen.h>
#include <lrun/data_loader.h>
#include <lrun/evaluation.h>
#include <lrun/session.h>
#include <torch/data/datasets/base.h>
#include <torch/data/example.h>
#include <torch/nn/modules/linear.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace lrun::test {

/// Samples with labels of three classes.
struct LabelledWaves : torch::data::datasets::BatchDataset<LabelledWaves, torch::data::Example<>> {
  explicit LabelledWaves(std::size_t samples) : samples_(samples) {}
  torch::data::Example<> get_batch(at::ArrayRef<std::size_t> indices) override {
    const at::Tensor rows = at::tensor(std::vector<std::int64_t>(indices.begin(), indices.end()), at::kLong);
    return {at::sin(rows.unsqueeze(1) + at::arange(4)), rows.remainder(3)};
  }
  [[nodiscard]] std::optional<std::size_t> size() const override { return samples_; }

 private:
  std::size_t samples_;
};

struct Evaluated {
  double mean = 0;
  at::Tensor predictions;
};

inline std::shared_ptr<torch::nn::LinearImpl> classifier_of_waves() {
  auto net = std::make_shared<torch::nn::LinearImpl>(4, 3);
  const at::NoGradGuard no_grad;
  net->weight.copy_(at::sin(at::arange(12)).view({3, 4}));
  net->bias.zero_();
  return net;
}

inline at::Tensor classify(torch::nn::LinearImpl& net, const torch::data::Example<>& part) {
  return at::log_softmax(net.forward(part.data), 1);
}

/// The example of lrun/evaluation.h.
inline Evaluated evaluate_as_documented(Session& session, const LabelledWaves& data) {
  constexpr std::int64_t kClasses = 3;
  auto model = session.wrap(classifier_of_waves());
  auto loader = session.loader(data, {.batch_size = 2, .shuffle = false, .remainder = Remainder::kUneven});
  std::vector<at::Tensor> outputs = {at::empty({0, kClasses}, session.device())};
  double loss = 0;
  double samples = 0;
  for (const auto& batch : *loader) {
    outputs.push_back(model.eval_step(batch, classify));
    const at::Tensor target = batch.target.to(session.device());
    loss += at::nll_loss(outputs.back(), target, {}, at::Reduction::Sum).item<double>();
    samples += static_cast<double>(target.size(0));
  }
  return {weighted_mean(session.collectives(), loss / samples, samples),
          all_gather_in_order(session.collectives(), at::cat(outputs))};
}

/// The same of one process on the CPU.
inline Evaluated evaluate_alone(LabelledWaves data) {
  std::vector<std::size_t> all(*data.size());
  for (std::size_t sample = 0; sample < all.size(); ++sample) all[sample] = sample;
  const auto batch = data.get_batch(all);
  const at::NoGradGuard no_grad;
  const at::Tensor output = classify(*classifier_of_waves(), batch);
  return {at::nll_loss(output, batch.target).item<double>(), output};
}

}  // namespace lrun::test
