// Training on devices that are no CPUs: the same results as on the CPU, whatever the strategy.

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gtest/gtest.h>
#include <lrun/clip_grad_norm.h>
#include <lrun/distributed_data_parallel.h>
#include <lrun/error.h>
#include <lrun/session.h>
#include <lrun/sync_batch_norm.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/serialize.h>
#include <torch/utils.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "runtime/devices/fake_device.h"
#include "runtime/dp/data_parallel.h"
#include "runtime/support/fake_replica_link.h"
#include "runtime/support/layout.h"
#include "runtime/support/repeatable_net.h"

namespace lrun::test {
namespace {

constexpr std::int64_t kSamples = 12;
constexpr int kSteps = 4;

struct SessionNet : RepeatableNet {
  SessionNet() {
    unused = register_parameter("unused", at::ones({3}));
    set_repeatable(*this);
  }

  at::Tensor unused;
};

using LabelledBatch = std::pair<at::Tensor, at::Tensor>;

LabelledBatch batch_of(int step, int rank = 0, int ranks = 1) {
  const auto wave = [&](std::int64_t columns) {
    const at::Tensor whole = at::sin(at::arange(kSamples * columns, at::kDouble) * (0.7 + 0.01 * step));
    return whole.view({kSamples, columns}).tensor_split(ranks)[static_cast<std::size_t>(rank)];
  };
  return {wave(4), wave(2)};
}

/// The trained parameters and buffers, on the CPU.
using Result = std::vector<at::Tensor>;

Result train(Session& session) {
  const auto net = std::make_shared<SessionNet>();
  auto model = session.wrap(net);
  auto optimizer = session.optimizer<torch::optim::SGD>(model, torch::optim::SGDOptions(0.1).momentum(0.9));
  for (int step = 0; step < kSteps; ++step) {
    optimizer.zero_grad();
    const at::Tensor loss = model.train_step(
        batch_of(step, session.rank(), session.world_size()),
        [](SessionNet& replica, const LabelledBatch& part) { return replica.forward(part.first); },
        [](const at::Tensor& outputs, const LabelledBatch& batch) { return (outputs - batch.second).square().mean(); });
    EXPECT_EQ(loss.device(), session.device());
    EXPECT_LT(clip_grad_norm(model.parameters(), 100), 100);
    optimizer.step();
  }
  Result result;
  for (const auto& item : net->named_parameters()) {
    EXPECT_EQ(item.value().device(), session.device()) << item.key();
    result.push_back(item.value().detach().cpu());
  }
  for (const at::Tensor& buffer : net->buffers()) result.push_back(buffer.cpu());
  return result;
}

Result train_on(std::vector<std::string> devices, const std::string& strategy = "ddp") {
  Session session({.world = World(), .strategy = strategy, .devices = std::move(devices), .banner = false});
  return train(session);
}

/// Of rank 0.
Result train_ranks(const std::string& strategy, int nodes,
                   const std::function<std::vector<std::string>(int)>& devices) {
  Result result;
  const Layout layout{strategy, strategy == "ddp2" ? 2 : 1, nodes};
  rethrow_first(run_owning_ranks(layout.world_size(), [&](int rank, std::unique_ptr<Collectives> collectives) {
    SessionOptions options = options_of(layout, rank);
    options.devices = devices(rank);
    // Made anew after the first step: the parameter that nobody uses is expected first.
    options.gradients = {.bucket_bytes = 1, .first_bucket_bytes = 1};
    options.connect = [&](const World&) { return std::move(collectives); };
    Session session(std::move(options));
    Result own = train(session);
    if (rank == 0) result = std::move(own);
  }));
  return result;
}

void expect_same(const Result& actual, const Result& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t index = 0; index < actual.size(); ++index) {
    EXPECT_TRUE(at::allclose(actual[index], expected[index], 1e-12, 1e-12))
        << index << ": " << actual[index] << expected[index];
  }
}

TEST(DeviceSession, PlacesTheModelAndTrainsAsOnTheCpu) { expect_same(train_on({"hpu:1"}), train_on({"cpu"})); }

TEST(DeviceSession, AveragesOverRanksWithADeviceEach) {
  const auto device_of_rank = [](int rank) { return std::vector<std::string>{"hpu:" + std::to_string(rank)}; };
  expect_same(train_ranks("ddp", 2, device_of_rank), train_on({"cpu"}));
  expect_same(train_ranks("ddp_sharded", 2, device_of_rank), train_on({"cpu"}));
}

TEST(DeviceSession, SplitsBatchesOverDevices) {
  expect_same(train_on({"hpu:0", "hpu:1"}, "dp"), train_on({"cpu"}));
  expect_same(train_on({"hpu:1", "hpu:1", "hpu:0"}, "dp"), train_on({"cpu"}));  // two replicas share one
}

TEST(DeviceSession, BringsAModuleBackThatWasLoadedOrMoved) {
  for (const std::vector<std::string>& devices : {std::vector<std::string>{"hpu:1"}, {"hpu:1", "hpu:0"}}) {
    Session session(
        {.world = World(), .strategy = devices.size() == 1 ? "ddp" : "dp", .devices = devices, .banner = false});
    const auto net = std::make_shared<SessionNet>();
    auto model = session.wrap(net);
    const auto forward = [](SessionNet& replica, const at::Tensor& part) { return replica.forward(part); };
    const at::Tensor expected = model.eval_step(batch_of(0).first, forward).cpu();
    net->to(at::kCPU);
    EXPECT_TRUE(at::allclose(model.eval_step(batch_of(0).first, forward).cpu(), expected));
    std::stringstream bytes;
    torch::save(std::make_shared<SessionNet>(), bytes);
    torch::load(net, bytes);
    ASSERT_TRUE(net->first->weight.is_cpu());
    model.train_step(batch_of(0).first, forward,
                     [](const at::Tensor& outputs, const at::Tensor&) { return outputs.sum(); });
    for (const at::Tensor& parameter : net->parameters()) EXPECT_EQ(parameter.device(), session.device());
    EXPECT_EQ(net->seen.device(), session.device());
    EXPECT_EQ(net->first->weight.grad().device(), session.device());
  }
}

TEST(DeviceSession, ExchangesThroughNcclWhereReplicasHaveADeviceEach) {
  FakeNccl nccl;
  register_strategy("dp through nccl", [&](const StrategyContext& context) {
    const std::vector<at::Device> devices = {fake(0), fake(1)};
    return std::make_unique<detail::DataParallel>(
        context, devices,
        std::make_unique<detail::ReplicaGroup>(devices, std::make_unique<FakeReplicaLink>(nccl), kTestTimeout));
  });
  expect_same(train_on({"hpu:0"}, "dp through nccl"), train_on({"cpu"}));
  const auto calls = nccl.calls();
  const auto count = [&](const std::string& call) { return std::ranges::count(calls, call); };
  EXPECT_EQ(count("broadcast 0 [8, 4]"), kSteps) << "parameters";
  EXPECT_EQ(count("broadcast 1 [1]"), kSteps) << "buffers";
  EXPECT_EQ(count("sum 1 [8, 4]"), kSteps) << "gradients";
  EXPECT_EQ(count("sum 1 [3]"), 0) << "a gradient that there is not";
  EXPECT_EQ(count("begin"), 2 * kSteps) << "one operation for all parameters, one for all gradients";
}

TEST(DeviceSession, SplitsInsideANodeAndAveragesBetweenThem) {
  const auto devices = [](int) { return std::vector<std::string>{"hpu:0", "hpu:1"}; };
  expect_same(train_ranks("ddp2", 2, devices), train_on({"cpu"}));
}

TEST(DeviceSession, WorksInTheStreamsOfItsCaller) {
  const c10::impl::VirtualGuardImpl guard(fake(0).type());
  const std::vector<c10::Stream> streams = {guard.getStreamFromGlobalPool(fake(0)),
                                            guard.getStreamFromGlobalPool(fake(1))};
  const Result expected = train_on({"cpu"});
  const c10::MultiStreamGuard current(streams);
  forget_fake_history();
  expect_same(train_on({"hpu:0", "hpu:1"}, "dp"), expected);
  bool used_in_second = false;
  for (const std::string& line : fake_history()) {
    if (!line.starts_with("used ")) continue;
    const bool first = line == "used 0 in 0:" + std::to_string(streams[0].id());
    const bool second = line == "used 1 in 1:" + std::to_string(streams[1].id());
    used_in_second = used_in_second || second;
    EXPECT_TRUE(first || second) << line << ": a replica's thread works on another stream than the caller";
  }
  EXPECT_TRUE(used_in_second);
}

TEST(DeviceSession, GivesThePinnedMemoryOfABatchBack) {
  for (const std::vector<std::string>& devices : {std::vector<std::string>{"hpu:0"}, {"hpu:0", "hpu:1"}}) {
    Session session({.world = World(), .strategy = "dp", .devices = devices, .banner = false});
    auto model = session.wrap(std::make_shared<SessionNet>());
    const at::Tensor batch = batch_of(0).first.pin_memory();
    forget_fake_history();
    const at::Tensor outputs =
        model.eval_step(batch, [](SessionNet& net, const at::Tensor& part) { return net.forward(part); });
    EXPECT_GE(fake_history().size(), 2 * devices.size());
    EXPECT_EQ(waiting_copies(), 0U) << "a copy would read memory that is the caller's again";
    EXPECT_EQ(outputs.size(0), kSamples);
  }
}

TEST(DeviceSession, NormalisesOverRanksWithADeviceEach) {
  run_sessions(
      2,
      [](Session& session) {
        const auto net = std::make_shared<nn::SyncBatchNormImpl>(torch::nn::BatchNormOptions(4));
        net->to(at::kDouble);
        auto model = session.wrap(net);
        const at::Tensor batch = batch_of(0, session.rank(), 2).first;
        model.train_step(batch, [](nn::SyncBatchNormImpl& norm, const at::Tensor& part) {
          return norm.forward(part).square().mean();
        });
        const at::Tensor mean = batch_of(0).first.mean(0) * 0.1;
        EXPECT_EQ(net->running_mean.device(), session.device());
        EXPECT_TRUE(at::allclose(net->running_mean.cpu(), mean)) << net->running_mean << mean;
      },
      [](int rank) {
        SessionOptions options{.banner = false};
        options.devices = {"hpu:" + std::to_string(rank)};
        return options;
      });
}

TEST(DeviceSession, SumsMetricsOfDevices) {
  run_sessions(
      2,
      [](Session& session) {
        EXPECT_EQ(session.all_reduce(session.rank() + 1.0, ReduceOp::kSum), 3.0);
        const at::Tensor metric = at::full({2}, session.rank(), at::kDouble).to(session.device());
        const at::Tensor average = session.all_reduce(metric);
        EXPECT_EQ(average.device(), session.device());
        EXPECT_TRUE(average.cpu().equal(at::full({2}, 0.5, at::kDouble)));
        EXPECT_EQ(session.collectives().allocate_bucket(3, at::kFloat).device(), session.device());
      },
      [](int rank) {
        SessionOptions options{.banner = false};
        options.devices = {"hpu:" + std::to_string(rank)};
        return options;
      });
}

TEST(DeviceSession, MakesItsDeviceTheCurrentOne) {
  const c10::DeviceGuard back(fake(0));
  const Session session({.world = World(), .devices = {"hpu:1"}, .banner = false});
  EXPECT_EQ(c10::impl::VirtualGuardImpl(fake(0).type()).getDevice(), fake(1));
}

TEST(DeviceSession, RefusesADeviceThatIsNotThere) {
  try {
    Session session({.world = World(), .devices = {"hpu:2"}});
    FAIL() << "accepted";
  } catch (const Unsupported& error) {
    EXPECT_STREQ(error.what(), "device 'hpu:2' is not there: this process sees 2 GPUs, counted from 0");
  }
}

TEST(DeviceSession, NamesAParameterThatWasMovedAndIsNotBroughtBack) {
  run_ranks(2, [](int, Collectives& group) {
    const at::Tensor weight = at::ones({3}).set_requires_grad(true);
    GradientSync sync({{"weight", weight}}, group);
    sync.prepare();
    weight.set_data(weight.detach().to(fake(0)));
    try {
      sync.prepare();
      ADD_FAILURE() << "accepted";
    } catch (const std::logic_error& error) {
      EXPECT_STREQ(
          error.what(),
          "parameter 'weight' was on cpu when the module was wrapped and is on hpu:0 now, by to() or by load() "
          "of an archive: move it back with module->to(torch::Device(\"cpu\"))");
    }
  });
}

TEST(DeviceSession, PlacesTheModuleOfTheClassicForm) {
  Session session({.world = World(), .devices = {"hpu:1"}, .banner = false});
  const auto net = std::make_shared<SessionNet>();
  DistributedDataParallel ddp(net, session);
  const auto [input, target] = batch_of(0);
  const at::Tensor outputs = ddp.forward(input.to(session.device()));
  (outputs - target.to(session.device())).square().mean().backward();
  EXPECT_EQ(outputs.device(), fake(1));
  EXPECT_EQ(net->first->weight.grad().device(), fake(1));
}

TEST(DeviceSession, RefusesToAverageGradientsOfAnotherDevice) {
  run_ranks(2, [](int, Collectives& group) {
    const auto net = std::make_shared<SessionNet>();
    net->to(fake(0));
    try {
      GradientSync sync({{"weight", net->first->weight}}, group);
      ADD_FAILURE() << "accepted";
    } catch (const std::invalid_argument& error) {
      EXPECT_STREQ(error.what(),
                   "parameter 'weight' is on hpu:0, and the group averages gradients on cpu: move the module there, or "
                   "let Session::wrap() do it");
    }
  });
}

}  // namespace
}  // namespace lrun::test
