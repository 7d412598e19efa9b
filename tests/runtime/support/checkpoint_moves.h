#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <lrun/checkpoint.h>
#include <lrun/session.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/serialize/input-archive.h>
#include <torch/serialize/output-archive.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/support/repeatable_net.h"

// A training of two ranks that is saved on devices of one kind and goes on on those of another.
namespace lrun::test::moves {

inline constexpr std::uint64_t kSaved = 3;
inline constexpr std::uint64_t kLast = 6;
inline constexpr int kRanks = 2;

using Net = RepeatableNet;

using Adam = Optimizer<torch::optim::Adam>;

inline std::string pack(const Net& net, Adam& optimizer) {
  torch::serialize::OutputArchive archive;
  torch::serialize::OutputArchive of_net;
  net.save(of_net);
  archive.write("net", of_net);
  torch::serialize::OutputArchive of_optimizer;
  optimizer.save(of_optimizer, kAllRanks);
  archive.write("optimizer", of_optimizer);
  std::string bytes;
  archive.save_to([&](const void* data, std::size_t size) {
    bytes.append(static_cast<const char*>(data), size);
    return size;
  });
  return bytes;
}

/// \param part  a module or an optimizer.
template <class Part>
void unpack(const std::string& bytes, at::Device device, const std::string& name, Part& part) {
  torch::serialize::InputArchive archive;
  archive.load_from(bytes.data(), bytes.size(), device);
  torch::serialize::InputArchive of_part;
  archive.read(name, of_part);
  part.load(of_part);
}

/// When a training that goes on reads its checkpoint.
enum class Reads { kBeforeWrap, kAfterWrap };

/// The state that the optimizer has of the parameters. Collective.
inline std::vector<at::Tensor> state_of(Adam& optimizer, const Net& net) {
  const auto whole = optimizer.whole_state(kAllRanks);
  std::vector<at::Tensor> result;
  for (const at::Tensor& parameter : net.parameters()) {
    const auto& state = static_cast<const torch::optim::AdamParamState&>(
        *optimizer->state().at(static_cast<void*>(parameter.unsafeGetTensorImpl())));
    result.push_back(state.exp_avg().cpu());
    result.push_back(state.exp_avg_sq().cpu());
  }
  return result;
}

/// Goes on where `folder` says up to step `last`, and saves there. \return  parameters, buffers and the optimizer's
/// state, on the CPU.
inline std::vector<at::Tensor> train(Session& session, const std::filesystem::path& folder, std::uint64_t last,
                                     Reads reads) {
  CheckpointFolder checkpoints(session, folder);
  const auto found = checkpoints.newest();
  const std::string bytes = found ? checkpoints.load(*found) : std::string();
  const auto net = std::make_shared<Net>();
  const bool after = reads == Reads::kAfterWrap;
  if (found && !after) unpack(bytes, session.device(), "net", *net);
  auto model = session.wrap(net);
  auto optimizer = session.optimizer<torch::optim::Adam>(model, torch::optim::AdamOptions(0.05));
  if (found && after) unpack(bytes, at::kCPU, "net", *net);
  if (found) unpack(bytes, after ? at::kCPU : session.device(), "optimizer", optimizer);
  for (std::uint64_t step = found ? found->step : 0; step < last; ++step) {
    optimizer.zero_grad();
    const at::Tensor input =
        at::sin(at::arange(24, at::kDouble) * (0.7 + 0.01 * static_cast<double>(step))).view({6, 4});
    model.train_step(input.tensor_split(kRanks)[static_cast<std::size_t>(session.rank())],
                     [](Net& replica, const at::Tensor& part) { return replica.forward(part).square().mean(); });
    optimizer.step();
  }
  checkpoints.save(last, pack(*net, optimizer));
  std::vector<at::Tensor> result;
  for (const at::Tensor& tensor : net->parameters()) {
    EXPECT_EQ(tensor.device(), session.device());
    result.push_back(tensor.detach().cpu());
  }
  result.push_back(net->seen.cpu());
  for (at::Tensor& tensor : state_of(optimizer, *net)) result.push_back(std::move(tensor));
  return result;
}

/// Goes on with two ranks on devices of a kind where the folder says, as train() does. \return  what train() does, of
/// rank 0 or of the rank that calls it.
using TrainOn = std::function<std::vector<at::Tensor>(const std::string& kind, const std::filesystem::path& folder,
                                                      std::uint64_t last, Reads reads)>;

/// Saved on devices `from`, a training goes on on `to` as one that was never stopped, and is read again on `from`. All
/// is kept in `folder`, which is empty.
inline void expect_to_go_on(const TrainOn& train_on, const std::filesystem::path& folder, const std::string& from,
                            const std::string& to, Reads reads) {
  const auto expected = train_on("cpu", folder / "straight", kLast, Reads::kBeforeWrap);
  train_on(from, folder / "moved", kSaved, Reads::kBeforeWrap);
  const auto actual = train_on(to, folder / "moved", kLast, reads);
  const double limit = from == "cuda" || to == "cuda" ? 1e-9 : 1e-12;  // a GPU rounds otherwise
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t index = 0; index < actual.size(); ++index) {
    EXPECT_TRUE(at::allclose(actual[index], expected[index], limit, limit))
        << index << ": " << actual[index] << expected[index];
  }
  const auto back = train_on(from, folder / "moved", kLast, Reads::kBeforeWrap);  // nothing is left to do but to load
  for (std::size_t index = 0; index < back.size(); ++index) {
    EXPECT_TRUE(back[index].equal(actual[index])) << index << ": " << back[index] << actual[index];
  }
}

}  // namespace lrun::test::moves
