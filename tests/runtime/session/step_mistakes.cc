// Steps that train_step() cannot call, and optimizers that are not told all. Nobody links this: step_mistakes.sh
// compiles it, and looks for each text after 'says:' among the compiler's errors.
#include <ATen/ops/ones.h>
#include <lrun/session.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>

namespace {

struct NetImpl : torch::nn::Module {};
TORCH_MODULE(Net);

struct Image {};

void train(lrun::Model<NetImpl>& model, const at::Tensor& batch) {
  // says: step is called as step(Module&, const Batch&)
  model.train_step(batch, [](Net, const at::Tensor&) { return at::ones({}); });
  // says: step is called as step(Module&, const Batch&)
  model.eval_step(batch, [](NetImpl&) { return at::ones({}); });
  // says: step has to return a Tensor
  model.train_step(batch, [](NetImpl&, const at::Tensor&) {});
  // says: without a step_end, step has to return the loss of its part
  model.train_step(batch, [](NetImpl&, const at::Tensor& input) { return std::pair(input, input); });
  // says: step_end is called as step_end(const Outputs&, const Batch&)
  model.train_step(
      batch, [](NetImpl&, const at::Tensor& input) { return input; }, [](const at::Tensor& output) { return output; });
  // says: step_end of train_step() has to return the loss of the whole batch
  model.train_step(
      batch, [](NetImpl&, const at::Tensor& input) { return input; }, [](const at::Tensor&, const at::Tensor&) {});
  // says: the batch has to be a Tensor
  model.train_step(Image(), [](NetImpl&, const Image&) { return at::ones({}); });
}

void optimize(lrun::Model<NetImpl>& model, lrun::Collectives& collectives) {
  const torch::optim::AdamOptions options(0.1);
  // says: an Optimizer over ranks has to be told whether they split its state
  lrun::Optimizer<torch::optim::Adam>(model.parameters(), options, &collectives).step();
}

}  // namespace

void use(lrun::Model<NetImpl>& model, lrun::Collectives& collectives) {
  train(model, at::ones({2}));
  optimize(model, collectives);
}
