// A loss over the whole batch: every sample is told apart from all others of it (noise contrastive, InfoNCE), so more
// samples are more negatives.
//
//   contrastive                                    one device
//   lrun --devices 4 --strategy dp contrastive     four devices, one batch: the same negatives, the same loss
//   lrun --devices 4 contrastive                   four batches, one a device: four times the negatives
//
// `step` sees a part of the batch, so its softmax would know the negatives of that part only, which is another and
// smaller loss: the program says how much. `step_end` sees the outputs of all parts of this process, and gathers those
// of the other ranks; their gradients flow back to them.
#include <lrun/lrun.h>
#include <torch/data/datasets/base.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <cstdio>

using Views = torch::data::Example<>;  // data, target: (samples, 8), the same things seen twice

struct Things : torch::data::datasets::BatchDataset<Things, Views> {
  torch::Tensor first = torch::randn({1024, 8});
  torch::Tensor second = first + 0.3 * torch::randn({1024, 8});

  Views get_batch(c10::ArrayRef<std::size_t> indices) override {
    const torch::Tensor rows = torch::tensor(std::vector<std::int64_t>(indices.begin(), indices.end()));
    return {first.index_select(0, rows), second.index_select(0, rows)};
  }
  std::optional<std::size_t> size() const override { return 1024; }
};

struct Encoder : torch::nn::Cloneable<Encoder> {  // each device has a clone
  Encoder() { reset(); }
  void reset() final {
    hidden = register_module("hidden", torch::nn::Linear(8, 32));
    output = register_module("output", torch::nn::Linear(32, 16));
  }
  torch::Tensor forward(const torch::Tensor& things) { return output(torch::tanh(hidden(things))); }
  torch::nn::Linear hidden{nullptr}, output{nullptr};
};

using Codes = std::pair<torch::Tensor, torch::Tensor>;

Codes encode(Encoder& replica, const Views& part) { return {replica.forward(part.data), replica.forward(part.target)}; }

/// Each first view has to find its second among those of all samples given.
torch::Tensor contrast(const Codes& codes) {
  const torch::Tensor similarity = codes.first.mm(codes.second.t());
  return torch::nll_loss(torch::log_softmax(similarity, 1), torch::arange(similarity.size(0), similarity.device()));
}

int main() {
  lrun::Session session;
  torch::manual_seed(session.seed());
  const auto loader = session.loader(Things(), {.batch_size = 64});
  auto model = session.wrap(std::make_shared<Encoder>());
  auto optimizer = session.optimizer<torch::optim::SGD>(model, 0.1);
  const auto whole = [&](const Codes& codes, const Views&) {
    return contrast({lrun::all_gather_with_grad(session.collectives(), codes.first),
                     lrun::all_gather_with_grad(session.collectives(), codes.second)});
  };
  const auto report = [&](const char* when, const Views& batch) {
    const double loss = model.eval_step(batch, encode, whole).item<double>();
    const auto parts = model.eval_step(
        batch, [](Encoder& replica, const Views& part) { return contrast(encode(replica, part)).unsqueeze(0); });
    if (!session.is_rank_zero()) return;
    std::printf("%s: loss %.5f over the whole batch, %.5f within %d parts\n", when, loss, parts.mean().item<double>(),
                static_cast<int>(parts.size(0)));
  };

  const Views first = *loader->begin();
  report("untrained", first);
  for (int epoch = 0; epoch < 5; ++epoch) {
    for (const Views& batch : *loader) {
      optimizer.zero_grad();
      model.train_step(batch, encode, whole);
      optimizer.step();
    }
  }
  report("trained", first);
}
