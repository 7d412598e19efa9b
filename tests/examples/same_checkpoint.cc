// Exit code 0 when two checkpoints hold the same training to the last bit: same_checkpoint FILE FILE
// Their bytes need not be equal: torch names the state of a parameter after its address.
#include <lrun/checkpoint.h>
#include <torch/optim/sgd.h>

#include <cstdio>
#include <exception>
#include <optional>
#include <string>

#include "errors.h"
#include "network.h"
#include "training_state.h"

namespace {

using namespace fashion_mnist;

struct Training {
  explicit Training(const char* path) {
    const auto file = lrun::read_checkpoint(path);
    if (!file) throw DataError(std::string("no file '") + path + "'");
    TrainingState checkpoint(file->content);
    epoch = checkpoint.epoch();
    checkpoint.load_into(network);
    checkpoint.load_into(optimizer);
  }

  torch::Tensor momentum(const torch::Tensor& parameter) {
    auto& state = optimizer.state().at(parameter.unsafeGetTensorImpl());
    return static_cast<torch::optim::SGDParamState&>(*state).momentum_buffer();
  }

  Network network;
  torch::optim::SGD optimizer{network.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9)};
  std::int64_t epoch = 0;
};

bool same(Training& a, Training& b) {
  if (a.epoch != b.epoch) {
    std::printf("epoch %lld and %lld\n", static_cast<long long>(a.epoch), static_cast<long long>(b.epoch));
    return false;
  }
  const auto others = b.network.named_parameters();
  for (const auto& item : a.network.named_parameters()) {
    const torch::Tensor& other = others[item.key()];
    if (!torch::equal(item.value(), other) || !torch::equal(a.momentum(item.value()), b.momentum(other))) {
      std::printf("'%s' or its momentum differs\n", item.key().c_str());
      return false;
    }
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    Training a(argv[1]);
    Training b(argv[2]);
    return same(a, b) ? 0 : 1;
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 2;
  }
}
