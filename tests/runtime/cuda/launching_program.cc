#include "runtime/cuda/launching_program.h"

#include <ATen/Context.h>
#include <ATen/ops/ones.h>
#include <lrun/lrun.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <memory>

#include "runtime/cuda/on_gpu.h"
#include "runtime/support/equality.h"

namespace lrun::detail::testing {
namespace {

using namespace test::equality;  // NOLINT: all of it is about that

constexpr int kRanks = 2;

/// The same in every process. torch::manual_seed() looks for GPUs, and then ranks cannot be forked.
template <class Net>
std::shared_ptr<Net> fresh() {
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
  generator.set_current_seed(1);
  auto net = std::make_shared<Net>();
  net->to(at::kDouble);
  return net;
}

struct Networks : torch::nn::Module {
  std::shared_ptr<Mlp> mlp = register_module("mlp", fresh<Mlp>());
  std::shared_ptr<BatchNormCnn> cnn = register_module("cnn", fresh<BatchNormCnn>());
  std::shared_ptr<SparseEmbedding> embedding = register_module("embedding", fresh<SparseEmbedding>());
};

template <class Net>
void train(Session& session, const std::shared_ptr<Net>& net) {
  train_process(session, net, make_data<Net>(at::kDouble));
  for (const at::Tensor& parameter : net->parameters()) require(parameter.is_cuda(), "a parameter is not on the GPU");
}

void train_all(const Networks& networks) {
  Session session({.devices = {"cuda:0"},
                   .timeout = std::chrono::seconds(60),
                   .gradients = {.bucket_bytes = 1024, .first_bucket_bytes = 512},
                   .banner = false});
  require(session.world_size() == kRanks, "there are other ranks than were asked for");
  train(session, networks.mlp);
  train(session, networks.cnn);
  train(session, networks.embedding);
}

template <class Net>
void compare(const char* name, const Net& trained) {
  const auto alone = fresh<Net>();
  train_alone(*alone, make_data<Net>(at::kDouble), kRanks);
  std::printf("%s %g\n", name, largest_difference(trained, *alone));
}

void launch_and_compare(const std::string& method, const std::string& backend) {
  const auto networks = std::make_shared<Networks>();
  LaunchOptions options;
  options.strategy = method;
  options.devices = kRanks;
  options.module = networks;
  options.backend = backend;
  options.timeout = std::chrono::seconds(80);
  lrun::launch([&] { train_all(*networks); }, options);
  compare("mlp", *networks->mlp);
  compare("cnn", *networks->cnn);
  compare("embedding", *networks->embedding);
}

void launch_after_cuda(const std::string& method) {
  require(at::ones({3}, on_gpu(at::kFloat)).sum().item<float>() == 3, "the sum of three ones on the GPU");
  LaunchOptions options;
  options.strategy = method;
  options.devices = kRanks;
  std::printf("%s\n", error_of([&] { lrun::launch([] {}, options); }).c_str());
}

}  // namespace

int run_launching_program(const std::string& method, const std::string& backend) {
  try {
    load_cuda_side();
    backend == "after-cuda" ? launch_after_cuda(method) : launch_and_compare(method, backend);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}

}  // namespace lrun::detail::testing
