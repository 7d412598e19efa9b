// A strategy of your own: local SGD. Ranks train on their own and average their parameters every eighth step, which
// communicates an eighth of what ddp does.
//
//   lrun --devices 2 own_strategy
#include <lrun/lrun.h>
#include <torch/data/datasets/base.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <cstdio>
#include <memory>
#include <utility>

class LocalSgd : public lrun::Strategy {
 public:
  explicit LocalSgd(const lrun::StrategyContext& context)
      : module_(context.module), collectives_(context.collectives) {}

  torch::Tensor backward(const torch::Tensor& loss) override {
    loss.backward();
    return loss.detach();
  }

  void average() {
    const torch::NoGradGuard no_grad;
    for (const torch::Tensor& parameter : module_->parameters()) {
      collectives_.all_reduce(parameter, lrun::ReduceOp::kAverage)->wait();
    }
  }

 private:
  static constexpr int kInterval = 8;

  void prepare_forward() override {
    if (step_++ % kInterval == 0) average();  // also before the first: all ranks begin with the same
  }

  std::shared_ptr<torch::nn::Module> module_;
  lrun::Collectives& collectives_;
  int step_ = 0;
};

using Points = torch::data::Example<>;  // data: (points, 1); target: (points, 1)

struct Line : torch::data::datasets::BatchDataset<Line, Points> {
  torch::Tensor x = torch::linspace(-1, 1, 1000).unsqueeze(1);

  Points get_batch(c10::ArrayRef<std::size_t> indices) override {
    const torch::Tensor rows = torch::tensor(std::vector<std::int64_t>(indices.begin(), indices.end()));
    const torch::Tensor points = x.index_select(0, rows);
    return {points, 3 * points + 1};
  }
  std::optional<std::size_t> size() const override { return 1000; }
};

int main() {
  lrun::register_strategy("local_sgd", [](const lrun::StrategyContext& context) -> std::unique_ptr<lrun::Strategy> {
    return std::make_unique<LocalSgd>(context);
  });
  lrun::Session session({.strategy = "local_sgd"});
  torch::manual_seed(session.seed() + static_cast<std::uint64_t>(session.rank()));
  const auto loader = session.loader(Line(), {.batch_size = 20});
  const auto net = std::make_shared<torch::nn::LinearImpl>(1, 1);
  auto model = session.wrap(net);
  auto optimizer = session.optimizer<torch::optim::SGD>(model, 0.1);
  for (int epoch = 0; epoch < 10; ++epoch) {
    for (const Points& batch : *loader) {
      optimizer.zero_grad();
      model.train_step(
          batch, [](torch::nn::LinearImpl& replica, const Points& part) { return replica.forward(part.data); },
          [](const torch::Tensor& outputs, const Points& all) { return torch::mse_loss(outputs, all.target); });
      optimizer.step();
    }
  }
  dynamic_cast<LocalSgd&>(model.strategy()).average();
  const double most = session.all_reduce(net->weight, lrun::ReduceOp::kMax).item<double>();
  if (session.is_rank_zero()) {
    std::printf("%s: y = %.3f x + %.3f, ranks differ by %g\n", session.strategy().c_str(), net->weight.item<double>(),
                net->bias.item<double>(), most - net->weight.item<double>());
  }
}
