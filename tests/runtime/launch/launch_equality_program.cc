// A user's program that trains three networks in ranks that it starts itself, for launch_equality_test.cc.
//
// usage: launch_equality_program METHOD RANKS, with the variables of its node where there are several
// The first node's prints a line for each network: its name, and how far what came back is from one process that trains
// on the whole batch; elements beside the largest of their tensor.
#include <lrun/lrun.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "runtime/support/equality.h"

namespace {

using namespace lrun::test::equality;  // NOLINT: all of it is about that

template <class Net>
std::shared_ptr<Net> fresh() {
  return make_net<Net>(1, at::kDouble);
}

struct Networks : torch::nn::Module {
  std::shared_ptr<Mlp> mlp = register_module("mlp", fresh<Mlp>());
  std::shared_ptr<BatchNormCnn> cnn = register_module("cnn", fresh<BatchNormCnn>());
  std::shared_ptr<SparseEmbedding> embedding = register_module("embedding", fresh<SparseEmbedding>());
};

void train_all(const Networks& networks) {
  lrun::Session session({.timeout = std::chrono::seconds(60),
                         .gradients = {.bucket_bytes = 1024, .first_bucket_bytes = 512},
                         .banner = false});
  train_process(session, networks.mlp, make_data<Mlp>(at::kDouble));
  train_process(session, networks.cnn, make_data<BatchNormCnn>(at::kDouble));
  train_process(session, networks.embedding, make_data<SparseEmbedding>(at::kDouble));
}

template <class Net>
void compare(const char* name, const Net& trained, int parts) {
  const auto alone = fresh<Net>();
  train_alone(*alone, make_data<Net>(at::kDouble), parts);
  std::printf("%s %g\n", name, largest_difference(trained, *alone));
}

}  // namespace

int main(int, char** arguments) {
  const auto networks = std::make_shared<Networks>();
  lrun::LaunchOptions options;
  options.strategy = arguments[1];
  options.devices = std::stoi(arguments[2]);
  options.module = networks;
  lrun::launch([&] { train_all(*networks); }, options);
  const char* const node = std::getenv("NODE_RANK");
  if (node != nullptr && std::string(node) != "0") return 0;
  const char* const world = std::getenv("WORLD_SIZE");
  const int parts = std::stoi(world == nullptr ? arguments[2] : world);
  compare("mlp", *networks->mlp, parts);
  compare("cnn", *networks->cnn, parts);
  compare("embedding", *networks->embedding, parts);
}
