// A training step of one rank on one GPU, with and without a wrapper: milliseconds, or what the GPU does in it.
//
// A program that tests/gpu/step.py drives, in turn with gpu_step.py. An order is 'MODEL DTYPE KIND PLACE STEPS':
//   MODEL  mlp, resnet18, encoder
//   DTYPE  float32, bfloat16: of parameters and batch
//   KIND   bare     the loop without lrun
//          ddp      wrapped, in a world of one: what a program costs that is written for many ranks and has one
//          no_sync  the same under no_sync()
//          synced   wrapped, with buckets and their all-reduces in the group, as a rank of many has them
//          summed   the same, where the group adds up instead of averaging (see AsTwoRanks)
//          with '_kept' behind it gradients are set to zero in place, with '_torch' torch::optim::SGD makes the step
//   PLACE  device, pinned: where the batch is before the step
//   STEPS  a number: milliseconds a step, of so many between two waits for the device; 'profile': kernels and copies
// All kinds make the step of SGD with momentum by operations on many tensors, as torch's Python does: torch::optim::SGD
// starts three kernels a parameter. Arguments: --try makes models small; a device [cuda:0] and a group's backend
// [nccl].
#include <lrun/session.h>
#include <torch/optim/sgd.h>

#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "as_two_ranks.h"
#include "device_work.h"
#include "gpu_models.h"
#include "turns.h"

namespace {

using lrun::bench::AsTwoRanks;
using lrun::bench::Figures;
using lrun::bench::GpuNet;

constexpr int kWarmUpSteps = 10;
constexpr int kProfiledSteps = 3;
constexpr double kRate = 1e-4;
constexpr double kMomentum = 0.9;

at::Tensor loss_of(GpuNet& net, const at::Tensor& batch) { return net.forward(batch).square().mean(); }

/// SGD with momentum over all tensors at once, as torch.optim.SGD does it on a GPU.
class ManyTensorSgd {
 public:
  explicit ManyTensorSgd(std::vector<at::Tensor> parameters) : parameters_(std::move(parameters)) {}

  void zero_grad(bool keeps) {
    if (keeps && parameters_.front().grad().defined()) return at::_foreach_zero_(gradients());
    for (auto& parameter : parameters_) parameter.mutable_grad().reset();
  }

  void step() {
    const at::NoGradGuard no_grad;
    const std::vector<at::Tensor> gradients = this->gradients();
    if (momenta_.empty()) {
      for (const auto& gradient : gradients) momenta_.push_back(gradient.clone());
    } else {
      at::_foreach_mul_(momenta_, kMomentum);
      at::_foreach_add_(momenta_, gradients);
    }
    at::_foreach_add_(parameters_, momenta_, -kRate);
  }

 private:
  [[nodiscard]] std::vector<at::Tensor> gradients() const {
    std::vector<at::Tensor> all;
    for (const auto& parameter : parameters_) all.push_back(parameter.grad());
    return all;
  }

  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> momenta_;
};

struct Kind {
  explicit Kind(std::string text) : name(std::move(text)) {
    for (const auto& [ending, flag] : {std::pair{"_kept", &keeps}, std::pair{"_torch", &is_torchs}}) {
      *flag = name.ends_with(ending);
      if (*flag) name.resize(name.size() - std::string(ending).size());
    }
  }

  std::string name;
  bool keeps = false;      // gradients, between steps
  bool is_torchs = false;  // the optimizer
};

/// One module that is trained, with or without a wrapper.
class Trained {
 public:
  /// \param session  that wraps the module; none for a bare one.
  Trained(std::shared_ptr<GpuNet> net, lrun::Session* session)
      : net_(std::move(net)), many_(net_->parameters()), torchs_(net_->parameters(), options()) {
    if (session != nullptr) model_.emplace(session->wrap(net_));
  }

  void step(const Kind& kind, const at::Tensor& batch, at::Device device) {
    many_.zero_grad(kind.keeps);
    if (!model_) {
      loss_of(*net_, batch.to(device, /*non_blocking=*/true)).backward();
    } else if (kind.name == "no_sync") {
      const auto guard = model_->no_sync();
      model_->train_step(batch, loss_of);
    } else {
      model_->train_step(batch, loss_of);
    }
    kind.is_torchs ? static_cast<void>(torchs_.step()) : many_.step();
  }

 private:
  static torch::optim::SGDOptions options() { return torch::optim::SGDOptions(kRate).momentum(kMomentum); }

  std::shared_ptr<GpuNet> net_;
  std::optional<lrun::Model<GpuNet>> model_;
  ManyTensorSgd many_;
  torch::optim::SGD torchs_;
};

/// The sessions, and the models of one name and dtype at a time.
class Bench {
 public:
  Bench(const std::string& device, const std::string& backend, bool is_small)
      : session_({.devices = {device}, .banner = false}),
        group_({.devices = {device}, .backend = backend, .banner = false}),
        many_({.world = two_ranks(),
               .devices = {device},
               .guards = {.compare_batches_for = 0},  // its two ranks have the same ones
               .banner = false,
               .connect =
                   [this](const lrun::World&) { return std::make_unique<AsTwoRanks>(group_.collectives(), sums_); }}),
        is_small_(is_small) {}

  Figures obey(std::istream& order) {
    std::string model;
    std::string dtype;
    std::string kind;
    std::string place;
    std::string steps;
    order >> model >> dtype >> kind >> place >> steps;
    load(model, dtype);
    Trained& trained = of(Kind(kind));
    const at::Tensor& batch = place == "pinned" ? pinned_ : batch_;
    const auto run = [&](int count) {
      for (int i = 0; i < count; ++i) trained.step(Kind(kind), batch, session_.device());
      lrun::bench::finish(session_.device());
    };
    if (steps == "profile") {
      run(kWarmUpSteps);
      return lrun::bench::profile(session_.device(), kProfiledSteps, [&] { run(kProfiledSteps); });
    }
    if (is_cold_) run(kWarmUpSteps);
    const int count = std::stoi(steps);
    const auto begin = std::chrono::steady_clock::now();
    run(count);
    const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - begin;
    return {{kind, taken.count() / count}};
  }

 private:
  static lrun::World two_ranks() {
    lrun::World world;
    world.world_size = 2;
    world.local_world_size = 2;
    return world;
  }

  /// Makes room for another model: those before it are dropped.
  void load(const std::string& model, const std::string& dtype) {
    if (model + ' ' + dtype == loaded_) return;
    for (auto* trained : {&bare_, &alone_, &synced_}) trained->reset();
    model_ = model;
    dtype_ = dtype == "bfloat16" ? at::kBFloat16 : at::kFloat;
    loaded_ = model + ' ' + dtype;
    const at::Tensor whole = at::randn(make()->batch_shape()).to(dtype_);
    pinned_ = session_.device().is_cpu() ? whole : whole.pin_memory();
    batch_ = whole.to(session_.device());
  }

  [[nodiscard]] std::shared_ptr<GpuNet> make() const {
    auto net = lrun::bench::make_net(model_, is_small_);
    net->to(session_.device(), dtype_);
    return net;
  }

  /// \return the one of this kind, made where there is none.
  Trained& of(const Kind& kind) {
    *sums_ = kind.name == "summed";
    const bool is_bare = kind.name == "bare";
    const bool is_alone = kind.name == "ddp" || kind.name == "no_sync";
    if (!is_bare && !is_alone && kind.name != "synced" && kind.name != "summed") {
      throw std::invalid_argument("unknown kind '" + kind.name + "'");
    }
    auto& trained = is_bare ? bare_ : is_alone ? alone_ : synced_;
    is_cold_ = !trained;
    if (is_cold_) trained.emplace(make(), is_bare ? nullptr : is_alone ? &session_ : &many_);
    return *trained;
  }

  lrun::Session session_;
  lrun::Session group_;  // whose collectives are used by the next
  std::shared_ptr<bool> sums_ = std::make_shared<bool>(false);
  lrun::Session many_;
  bool is_small_;
  std::string loaded_;
  std::string model_;
  at::ScalarType dtype_ = at::kFloat;
  at::Tensor batch_;
  at::Tensor pinned_;
  bool is_cold_ = false;
  std::optional<Trained> bare_;
  std::optional<Trained> alone_;
  std::optional<Trained> synced_;
};

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  const bool is_small = std::erase(words, "--try") > 0;
  words.resize(2);
  const std::string device = words[0].empty() ? "cuda:0" : words[0];
  Bench bench(device, words[1].empty() ? "nccl" : words[1], is_small);
  return lrun::bench::take_turns(true, [&](std::istream& order) { return bench.obey(order); });
}
