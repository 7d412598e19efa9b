// Programs without a word of CUDA on GPUs: every strategy equal to one process on the CPU, and dp to torch's own.

#include <ATen/ops/arange.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/sin.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lrun/session.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/serialize.h>

#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "runtime/collectives/registry.h"
#include "runtime/cuda/gpus.h"
#include "runtime/cuda/on_gpu.h"
#include "runtime/support/backend_ranks.h"
#include "runtime/support/equality.h"

namespace lrun::detail::testing {
namespace {

namespace equality = test::equality;
namespace nn = torch::nn;
using ::testing::Each;

constexpr double kLimit = 1e-6;

std::string on_gpu(int index) { return "cuda:" + std::to_string(index); }

SessionOptions options_on(int gpus, const std::string& strategy = "dp") {
  SessionOptions options{.world = World(), .strategy = strategy, .banner = false};
  for (int index = 0; index < gpus; ++index) options.devices.push_back(on_gpu(index));
  options.timeout = std::chrono::seconds(60);
  return options;
}

void require_close(const nn::Module& actual, const nn::Module& expected, const std::string& what) {
  const double difference = equality::largest_difference(actual, expected);
  require(difference < kLimit, what + ": differs by " + std::to_string(difference));
}

/// Trains on this session's devices and on the CPU alone, in doubles.
template <class Net>
void require_equal_to_the_cpu(Session& session, int parts) {
  const auto batches = equality::make_data<Net>(at::kDouble);
  const auto alone = equality::make_net<Net>(1, at::kDouble);
  equality::train_alone(*alone, batches, parts);
  const auto net = equality::make_net<Net>(1, at::kDouble);
  equality::train_process(session, net, batches);
  for (const at::Tensor& parameter : net->parameters()) {
    require(parameter.device() == session.device(), "a parameter is on " + parameter.device().str());
  }
  net->to(at::kCPU);
  require_close(*net, *alone, "the trained model");
}

template <class Net>
void require_dp_equal_on(int count) {
  EXPECT_EQ(run_apart([count] {
              Session session(options_on(count));
              require_equal_to_the_cpu<Net>(session, count);
            }),
            "")
      << count << " GPUs";
}

template <class Net>
void require_dp_equal_on_all() {
  for (const int count : {2, 3, 4}) {  // parts of a batch of 24 are equal there, as those of train_alone()
    if (count <= gpus()) require_dp_equal_on<Net>(count);
  }
}

TEST(DpOnOneGpu, EqualsOneProcessOnTheWholeBatch) {
  if (gpus() < 1) GTEST_SKIP() << "no /dev/nvidia0";
  require_dp_equal_on<equality::Mlp>(1);
  require_dp_equal_on<equality::BatchNormCnn>(1);
  require_dp_equal_on<equality::SparseEmbedding>(1);
}

TEST(DpOnOneGpu, SharesItBetweenReplicasByCopies) {
  if (gpus() < 1) GTEST_SKIP() << "no /dev/nvidia0";
  EXPECT_EQ(run_apart([] {
              SessionOptions options = options_on(1);
              options.devices.push_back(options.devices.front());
              Session session(options);
              require_equal_to_the_cpu<equality::Mlp>(session, 2);
            }),
            "");
}

TEST(DpOnTwoGpus, EqualsOneProcessOnTheWholeBatch) {
  if (gpus() < 2) GTEST_SKIP() << "replicas want a GPU each, and there are " << gpus();
  require_dp_equal_on_all<equality::Mlp>();
  require_dp_equal_on_all<equality::BatchNormCnn>();
  require_dp_equal_on_all<equality::SparseEmbedding>();
}

/// The first two GPUs' current streams: of a pool, or the default ones, which CUDA takes for the current device's.
void require_equal_between_two(const std::string& backend, bool in_own_streams) {
  SessionOptions options = options_on(2);
  options.connect = [](const World&) { return make_collectives("single", {}); };
  options.backend = backend;  // of the replicas alone: the world is one
  Session session(options);
  const c10::impl::VirtualGuardImpl guard(at::kCUDA);
  std::vector<c10::Stream> streams;
  for (const std::string name : {"cuda:0", "cuda:1"}) {
    const at::Device device(name);
    streams.push_back(in_own_streams ? guard.getStreamFromGlobalPool(device) : guard.getDefaultStream(device));
  }
  const c10::MultiStreamGuard current(streams);
  require_equal_to_the_cpu<equality::Mlp>(session, 2);
}

TEST(DpOnTwoGpus, IsTheSameByCopiesAndInTheStreamsOfItsCaller) {
  if (gpus() < 2) GTEST_SKIP() << "replicas want a GPU each, and there are " << gpus();
  for (const std::string backend : {"nccl", "gloo"}) {
    for (const bool in_own_streams : {false, true}) {
      EXPECT_EQ(run_apart([&] { require_equal_between_two(backend, in_own_streams); }), "")
          << backend << (in_own_streams ? " in own streams" : " in default streams");
    }
  }
}

TEST(DdpOnTwoGpus, EqualsOneProcessOnTheWholeBatch) {
  if (gpus() < 2) GTEST_SKIP() << "NCCL wants a GPU for each rank, and there are " << gpus();
  for (const std::string strategy : {"ddp", "ddp_sharded"}) {
    std::vector<RankProcess> ranks;
    for (int rank = 0; rank < 2; ++rank) {
      ranks.emplace_back([rank, strategy, group = group_of(rank, 2, strategy + "-gpus", std::chrono::seconds(60))] {
        ::setenv("CUDA_VISIBLE_DEVICES", std::to_string(rank).c_str(), 1);
        SessionOptions options = options_on(1, strategy);
        options.world->rank = options.world->local_rank = rank;
        options.world->world_size = options.world->local_world_size = 2;
        options.connect = [&](const World&) { return make_collectives("nccl", group); };
        Session session(options);
        require_equal_to_the_cpu<equality::BatchNormCnn>(session, 2);
        require_equal_to_the_cpu<equality::SparseEmbedding>(session, 2);
      });
    }
    std::vector<std::string> errors;
    for (RankProcess& rank : ranks) errors.push_back(rank.result());
    EXPECT_THAT(errors, Each(std::string())) << strategy;
  }
}

TEST(DpOnOneGpu, GoesOnWithArchivesOfTheCpuThatAreLoadedAfterTheModuleWasWrapped) {
  if (gpus() < 1) GTEST_SKIP() << "no /dev/nvidia0";
  EXPECT_EQ(
      run_apart([] {
        Session session(options_on(gpus() < 2 ? 1 : 2));
        const auto saved = equality::make_net<equality::Mlp>(2, at::kDouble);
        torch::optim::Adam adam(saved->parameters());
        const auto batch = equality::make_data<equality::Mlp>(at::kDouble).front();
        const auto step_alone = [&] {
          adam.zero_grad();
          at::mse_loss(saved->forward(batch.data), batch.target).backward();
          adam.step();
        };
        step_alone();
        std::stringstream of_net;
        std::stringstream of_adam;
        torch::save(saved, of_net);
        torch::save(adam, of_adam);
        const auto net = equality::make_net<equality::Mlp>(3, at::kDouble);
        auto model = session.wrap(net);
        auto optimizer = session.optimizer<torch::optim::Adam>(model, torch::optim::AdamOptions());
        torch::load(net, of_net);
        torch::load(optimizer, of_adam);
        step_alone();
        optimizer.zero_grad();
        model.train_step(
            batch, [](auto& replica, const equality::Batch& part) { return replica.forward(part.data); },
            [](const at::Tensor& outputs, const equality::Batch& all) { return at::mse_loss(outputs, all.target); });
        optimizer.step();
        net->to(at::kCPU);
        require_close(*net, *saved, "the module after a step");
      }),
      "");
}

nn::Sequential make_sequential() {
  torch::manual_seed(5);
  nn::Sequential net(nn::Linear(16, 24), nn::Tanh(), nn::Linear(24, 5));
  net->to(at::kDouble);
  return net;
}

/// One step of torch's own data_parallel, in a library of its own, as only it needs LibTorch's CUDA side to be linked.
void require_equal_to_torchs(int count) {
  Session session(options_on(count));
  const char* const elsewhere = std::getenv("LRUN_TEST_TORCHS_DATA_PARALLEL");
  void* library = ::dlopen(elsewhere != nullptr ? elsewhere : LRUN_TEST_TORCHS_DATA_PARALLEL, RTLD_NOW);
  require(library != nullptr, library == nullptr ? ::dlerror() : "");
  using Backward = void (*)(nn::Sequential * net, const at::Tensor* data, const at::Tensor* target, int gpus);
  const auto backward = reinterpret_cast<Backward>(::dlsym(library, "lrun_test_data_parallel"));
  require(backward != nullptr, "the library lacks its function");
  const auto batch = equality::make_data<equality::Mlp>(at::kDouble).front();
  nn::Sequential expected = make_sequential();
  expected->to(session.device());
  const at::Tensor data = batch.data.to(session.device());
  const at::Tensor target = batch.target.to(session.device());
  backward(&expected, &data, &target, count);
  nn::Sequential net = make_sequential();
  auto model = session.wrap(net);
  model.train_step(
      batch, [](nn::SequentialImpl& replica, const equality::Batch& part) { return replica.forward(part.data); },
      [](const at::Tensor& outputs, const equality::Batch& all) { return at::mse_loss(outputs, all.target); });
  for (const auto& item : expected->named_parameters()) {
    const at::Tensor& theirs = item.value().grad();
    const at::Tensor& ours = net->named_parameters()[item.key()].grad();
    const double difference = (ours - theirs).abs().max().item<double>() / theirs.abs().max().item<double>();
    require(difference < kLimit, item.key() + ": the gradient differs by " + std::to_string(difference));
  }
}

TEST(DpOnOneGpu, HasTheGradientsOfTorchsDataParallel) {
  if (gpus() < 1) GTEST_SKIP() << "no /dev/nvidia0";
  for (int count = 1; count <= gpus(); ++count) {
    EXPECT_EQ(run_apart([count] { require_equal_to_torchs(count); }), "") << count << " GPUs";
  }
}

}  // namespace
}  // namespace lrun::detail::testing
