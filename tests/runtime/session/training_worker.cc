// A training program as users write them, for processes_test.cc: public headers only, no word about ranks.
//
// usage: training_worker train | mismatch | seeds | die-connect | die-broadcast | die-forward | die-reduce |
// die-checkpoint
//   train     20 steps; rank 0 prints the parameters, one line each, as hexadecimal doubles
//   mismatch  rank 1 has a wider layer
//   seeds     as train, with noise of each rank's own in its batches; every rank prints 'initial' and 'noise', too
//   die-…     rank 1 is killed in this phase
// Ends with 7 and the error's text on stdout when a session fails.
#include <lrun/lrun.h>
#include <signal.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

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

/// Ends this process, if it is rank 1 and dies in this phase.
void maybe_die(const std::string& mode, const std::string& phase, int rank) {
  if (rank == 1 && mode == "die-" + phase) ::raise(SIGKILL);
}

/// Within backward(), when the gradient of the first layer comes in; that of the second is on its way by then.
void die_in_backward(const std::string& mode, Net& net, int rank) {
  net.first->weight.register_hook([mode, rank](const at::Tensor&) { maybe_die(mode, "reduce", rank); });
}

std::unique_ptr<lrun::CheckpointFolder> checkpoints_of(const std::string& mode, lrun::Session& session) {
  if (mode != "die-checkpoint") return nullptr;
  return std::make_unique<lrun::CheckpointFolder>(session, std::getenv("TEST_CHECKPOINTS"));
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
  const lrun::World world = lrun::World::from_environment();
  maybe_die(mode, "connect", world.rank);
  // Rank 0 names the missing rank: its deadline has to come before that of the others.
  const bool names_the_missing = mode == "die-connect" && world.rank == 0;
  lrun::Session session({.timeout = std::chrono::seconds(names_the_missing ? 5 : 30)});
  // wrap makes them equal
  torch::manual_seed(session.seed() + (mode == "seeds" ? 0 : static_cast<std::uint64_t>(session.rank())));
  auto net = std::make_shared<Net>(mode == "mismatch" && session.rank() == 1 ? 17 : 16);
  if (mode == "seeds") std::printf("initial %a\n", net->first->weight.sum().item<double>());
  maybe_die(mode, "broadcast", session.rank());
  auto model = session.wrap(net, lrun::WrapOptions{.make_replica = [] { return std::make_shared<Net>(16); }});
  auto optimizer = session.optimizer<torch::optim::SGD>(model, 0.1);
  auto checkpoints = checkpoints_of(mode, session);
  die_in_backward(mode, *net, session.rank());
  torch::manual_seed(session.rank_seed());
  if (mode == "seeds") std::printf("noise %a\n", at::randn({}, at::kDouble).item<double>());
  for (int step = 0; step < 20; ++step) {
    optimizer.zero_grad();
    auto batch = batch_of(step, session);
    if (mode == "seeds") batch.first = batch.first + at::randn_like(batch.first);
    model.train_step(
        batch,
        [&](Net& replica, const std::pair<at::Tensor, at::Tensor>& part) {
          if (step == 4) maybe_die(mode, "forward", session.rank());
          return replica.forward(part.first);
        },
        [](const at::Tensor& outputs, const auto& full) { return at::mse_loss(outputs, full.second); });
    optimizer.step();
    if (step == 4) maybe_die(mode, "checkpoint", session.rank());
    if (checkpoints) checkpoints->save_part(static_cast<std::uint64_t>(step), "part");
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
