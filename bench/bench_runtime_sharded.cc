// What ddp_sharded saves: Adam over 12 x Linear(1024) in float32, one thread a rank.
//
// A rank of bench/runtime.py. The order is a word, and measures one step each of
//   ddp, ddp_sharded              milliseconds of the optimizer's step, with its exchange of parameters
//   ddp_bytes, ddp_sharded_bytes  Adam's state on the rank that has the most
#include <lrun/session.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>

#include <chrono>
#include <memory>
#include <string>

#include "turns.h"

namespace {

constexpr int kLayers = 12;
constexpr std::int64_t kWidth = 1024;

struct Net : torch::nn::Module {
  Net() {
    for (int layer = 0; layer < kLayers; ++layer) {
      register_module("layer" + std::to_string(layer), torch::nn::Linear(kWidth, kWidth));
    }
  }
};

/// An optimizer over a model of its own, whose gradients are all there.
class Side {
 public:
  Side(lrun::Session& session, bool splits_state)
      : session_(session),
        optimizer_(net_->parameters(), torch::optim::AdamOptions(1e-3), &session.collectives(), splits_state) {
    for (auto& parameter : net_->parameters()) parameter.mutable_grad() = at::ones_like(parameter);
  }

  double time_step() {
    session_.barrier();
    const auto begin = std::chrono::steady_clock::now();
    optimizer_.step();
    const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - begin;
    return session_.all_reduce(taken.count(), lrun::ReduceOp::kMax);
  }

  double state_bytes() {
    double bytes = 0;
    for (const auto& [parameter, state] : optimizer_->state()) {
      const auto& adam = dynamic_cast<const torch::optim::AdamParamState&>(*state);
      bytes += static_cast<double>(adam.exp_avg().nbytes() + adam.exp_avg_sq().nbytes());
    }
    return session_.all_reduce(bytes, lrun::ReduceOp::kMax);
  }

 private:
  lrun::Session& session_;
  std::shared_ptr<Net> net_ = std::make_shared<Net>();
  lrun::Optimizer<torch::optim::Adam> optimizer_;
};

}  // namespace

int main() {
  lrun::Session session({.timeout = std::chrono::seconds(60), .banner = false});
  Side whole(session, false);
  Side sharded(session, true);
  return lrun::bench::take_turns(session.is_rank_zero(), [&](std::istream&) {
    lrun::bench::Figures figures{{"ddp", whole.time_step()}, {"ddp_sharded", sharded.time_step()}};
    figures["ddp_bytes"] = whole.state_bytes();
    figures["ddp_sharded_bytes"] = sharded.state_bytes();
    return figures;
  });
}
