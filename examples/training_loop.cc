// A training loop with gradient accumulation, clipping, a learning rate schedule, uneven ranks, evaluation, and a
// checkpoint from which the same command resumes (docs/training_loop.md). Alone or with any number of ranks:
// lrun --devices 2 training_loop FILE [EPOCHS]
#include <lrun/lrun.h>
#include <torch/data/datasets/base.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/optim/schedulers/step_lr.h>
#include <torch/serialize.h>
#include <torch/utils.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

using Points = torch::data::Example<>;  // data: (points, 1); target: (points, 1)

struct Wave : torch::data::datasets::BatchDataset<Wave, Points> {
  torch::Tensor x = torch::linspace(-3, 3, 1001).unsqueeze(1);  // two ranks have 501 and 500

  Points get_batch(c10::ArrayRef<std::size_t> indices) override {
    const torch::Tensor rows = torch::tensor(std::vector<std::int64_t>(indices.begin(), indices.end()));
    const torch::Tensor points = x.index_select(0, rows);
    return {points, points.sin()};
  }
  std::optional<std::size_t> size() const override { return 1001; }
};

struct Net : torch::nn::Cloneable<Net> {  // dp and ddp2 clone it
  Net() { reset(); }
  void reset() final {
    hidden = register_module("hidden", torch::nn::Linear(1, 64));
    dropout = register_module("dropout", torch::nn::Dropout(0.1));
    output = register_module("output", torch::nn::Linear(64, 1));
  }
  torch::Tensor forward(const torch::Tensor& points) { return output(dropout(torch::tanh(hidden(points)))); }
  torch::nn::Linear hidden{nullptr}, output{nullptr};
  torch::nn::Dropout dropout{nullptr};
};

constexpr std::size_t kAccumulated = 2;  // batches per optimizer step
constexpr std::size_t kBatchSize = 25;

torch::Tensor forward(Net& replica, const Points& part) { return replica.forward(part.data); }

class Training {
 public:
  Training(lrun::Session& session, const std::string& path)
      : session_(session),
        path_(path),
        loader_(session.loader(Wave(), {.batch_size = kBatchSize, .remainder = lrun::Remainder::kUneven})),
        test_(session.loader(Wave(), {.batch_size = 200, .shuffle = false, .remainder = lrun::Remainder::kUneven})),
        model_(session.wrap(std::make_shared<Net>())),
        optimizer_(session.optimizer<torch::optim::Adam>(model_, 0.01)),
        schedule_(*optimizer_, 2, 0.5) {
    torch::manual_seed(session.rank_seed());
    if (const auto checkpoint = lrun::load_checkpoint(session, path)) resume(*checkpoint);
  }

  [[nodiscard]] std::size_t epochs() const { return loader_->position().epoch; }  // that are done

  /// One epoch. \return the mean squared error afterwards.
  double train_epoch() {
    lrun::Join join(session_, model_);
    std::size_t taken = 0;
    for (const Points& batch : *loader_) {
      const bool is_last = ++taken % kAccumulated == 0 || taken == loader_->batches();
      std::optional<lrun::NoSyncGuard> no_sync;
      if (is_last) {
        join.begin_step();
      } else {
        no_sync.emplace(model_.no_sync());
      }
      model_.train_step(batch, forward, [](const torch::Tensor& outputs, const Points& all) {
        return torch::mse_loss(outputs, all.target) / static_cast<double>(kAccumulated);
      });
      if (is_last) update();
    }
    while (join.others_go_on()) {
      join.train_step_without_batch();
      update();
    }
    schedule_.step();
    const double error = evaluate();
    save();
    return error;
  }

 private:
  void update() {
    lrun::clip_grad_norm(model_.parameters(), 1.0);
    optimizer_.step();
    optimizer_.zero_grad();
  }

  double evaluate() {
    model_->eval();
    model_.broadcast_buffers();
    double error = 0;
    double samples = 0;
    for (const Points& batch : *test_) {
      const torch::Tensor outputs = model_.eval_step(batch, forward);
      const torch::Tensor target = batch.target.to(outputs.device());
      error += torch::mse_loss(outputs, target, at::Reduction::Sum).item<double>();
      samples += static_cast<double>(target.size(0));
    }
    model_->train();
    return lrun::weighted_mean(session_.collectives(), error / samples, samples);
  }

  void save() {
    torch::serialize::OutputArchive archive, module, optimizer;
    model_->save(module);
    optimizer_.save(optimizer);  // on every rank: under ddp_sharded each has a part of the state
    lrun::save_rng_state(session_, archive);
    if (!session_.is_rank_zero()) return;
    archive.write("module", module);
    archive.write("optimizer", optimizer);
    std::ostringstream bytes;
    archive.save_to(bytes);
    lrun::write_checkpoint(path_, bytes.str(), epochs());
  }

  void resume(const lrun::Checkpoint& checkpoint) {
    torch::serialize::InputArchive archive, module, optimizer;
    std::istringstream bytes(checkpoint.content);
    archive.load_from(bytes, at::kCPU);  // wherever it was saved; the next step moves module and optimizer
    loader_->set_epoch(checkpoint.step);
    archive.read("module", module);
    model_->load(module);
    for (std::size_t epoch = 0; epoch < checkpoint.step; ++epoch) schedule_.step();
    archive.read("optimizer", optimizer);
    optimizer_.load(optimizer);  // with its learning rate: after the steps of the schedule
    lrun::load_rng_state(session_, archive);
  }

  lrun::Session& session_;
  std::string path_;
  std::unique_ptr<lrun::DataLoader<Wave>> loader_, test_;
  lrun::Model<Net> model_;
  lrun::Optimizer<torch::optim::Adam> optimizer_;
  torch::optim::StepLR schedule_;
};

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: training_loop FILE [EPOCHS]\n", stderr);
    return 2;
  }
  const std::size_t epochs = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 4;
  lrun::Session session;
  torch::manual_seed(session.seed());  // the same parameters on all ranks, and in every run
  Training training(session, argv[1]);
  while (training.epochs() < epochs) {
    const double error = training.train_epoch();
    if (session.is_rank_zero()) std::printf("epoch %zu: error %.9f\n", training.epochs(), error);
    std::fflush(stdout);
  }
}
