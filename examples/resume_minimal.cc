// A training that goes on from its last step after a crash: each step is saved in memory, every hundredth and the
// last one on disk.
//
//   lrun --devices 2 --max-restarts 3 resume_minimal checkpoints 500
#include <lrun/checkpoint.h>
#include <lrun/lrun.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/serialize.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>

using Net = torch::nn::LinearImpl;
using Optimizer = lrun::Optimizer<torch::optim::Adam>;

namespace {

std::string pack(const Net& net, Optimizer& optimizer) {
  torch::serialize::OutputArchive archive;
  torch::serialize::OutputArchive of_optimizer;
  net.save(archive);
  optimizer.save(of_optimizer);
  archive.write("optimizer", of_optimizer);
  std::ostringstream bytes;
  archive.save_to(bytes);
  return std::move(bytes).str();
}

void unpack(const std::string& bytes, Net& net, Optimizer& optimizer) {
  std::istringstream stream(bytes);
  torch::serialize::InputArchive archive;
  torch::serialize::InputArchive of_optimizer;
  archive.load_from(stream);
  net.load(archive);
  archive.read("optimizer", of_optimizer);
  optimizer.load(of_optimizer);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: resume_minimal FOLDER STEPS\n";
    return 2;
  }
  const std::uint64_t steps = std::strtoull(argv[2], nullptr, 10);
  lrun::Session session;
  torch::manual_seed(session.seed());
  const auto net = std::make_shared<Net>(8, 1);
  auto model = session.wrap(net);
  auto optimizer = session.optimizer<torch::optim::Adam>(model, 0.01);

  lrun::CheckpointFolder checkpoints(session, argv[1]);
  std::uint64_t step = 0;
  if (const auto found = checkpoints.newest()) {
    unpack(checkpoints.load(*found), *net, optimizer);
    step = found->step;
    if (session.is_rank_zero()) {
      std::cout << "goes on from step " << step << (found->in_memory ? " in memory" : " on disk") << std::endl;
    }
  }
  while (step < steps) {
    torch::manual_seed(step * static_cast<std::uint64_t>(session.world_size()) +
                       static_cast<std::uint64_t>(session.rank()));
    const torch::Tensor samples = torch::randn({16, 8});
    optimizer.zero_grad();
    model.train_step(samples, [](Net& replica, const torch::Tensor& part) {
      return (replica.forward(part) - part.sum(1, true)).square().mean();
    });
    optimizer.step();
    ++step;
    const std::string state = pack(*net, optimizer);  // on all ranks: they may share the optimizer's state
    if (step % 100 == 0 || step == steps) {
      checkpoints.save(step, state);
    } else {
      checkpoints.save_in_memory(step, state);
    }
    if (session.is_rank_zero() && step % 10 == 0) std::cout << "step " << step << std::endl;
  }
  if (session.is_rank_zero()) std::cout << "bias " << std::hexfloat << net->bias.item<float>() << std::endl;
}
