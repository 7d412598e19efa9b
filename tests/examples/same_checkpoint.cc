// Exit code 0 when two checkpoints hold the same training: same_checkpoint FILE FILE [MOST]
// To the last bit, or with parameters that differ by at most MOST of their norm. The bytes of the files need not be
// equal: torch names the state of a parameter after its address.
#include <lrun/checkpoint.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
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

/// The norm of the difference, in norms of `b`; all parameters together. A NaN differs from every number.
bool close(const Training& a, const Training& b, double most) {
  const auto others = b.network.named_parameters();
  double difference = 0;
  double whole = 0;
  for (const auto& item : a.network.named_parameters()) {
    const torch::Tensor other = others[item.key()].to(torch::kDouble);
    difference += (item.value().to(torch::kDouble) - other).square().sum().item<double>();
    whole += other.square().sum().item<double>();
  }
  const double relative = std::sqrt(difference / whole);
  std::printf("the parameters differ by %.3g of their norm\n", relative);
  return a.epoch == b.epoch && relative <= most;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) return 2;
  try {
    Training a(argv[1]);
    Training b(argv[2]);
    const bool well = argc == 3 ? same(a, b) : close(a, b, std::strtod(argv[3], nullptr));
    return well ? 0 : 1;
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 2;
  }
}
