#pragma once

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>
#include <torch/serialize/input-archive.h>

#include <cstdint>
#include <string>

namespace fashion_mnist {

/// The state of a training after `epoch` epochs, as bytes: the epoch, the network's weights, the optimizer's state.
/// The order of the images needs no place in it: it follows from the seed and the epoch.
std::string pack_state(std::int64_t epoch, const torch::nn::Module& network, const torch::optim::Optimizer& optimizer);

/// What pack_state() wrote.
class TrainingState {
 public:
  /// \param device  where the training goes on
  /// \throws DataError  the bytes are something else.
  explicit TrainingState(const std::string& bytes, torch::Device device = torch::kCPU);

  [[nodiscard]] std::int64_t epoch() const { return epoch_; }  ///< epochs that were finished

  /// Call it before session.wrap(): the network gets new storage.
  /// \throws DataError  the checkpoint is of another network.
  void load_into(torch::nn::Module& network);
  /// \throws DataError  the checkpoint is of another optimizer.
  void load_into(torch::optim::Optimizer& optimizer);

 private:
  torch::serialize::InputArchive archive_;
  std::int64_t epoch_ = 0;
};

}  // namespace fashion_mnist
