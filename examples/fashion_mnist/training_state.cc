#include "training_state.h"

#include <torch/serialize/output-archive.h>

#include <sstream>

#include "errors.h"

namespace fashion_mnist {
namespace {

constexpr const char* kEpoch = "epoch";
constexpr const char* kNetwork = "network";
constexpr const char* kOptimizer = "optimizer";

template <typename Part>
void load_part(torch::serialize::InputArchive& archive, const char* key, Part& part) {
  try {
    torch::serialize::InputArchive of_part;
    archive.read(key, of_part);
    part.load(of_part);
  } catch (const c10::Error&) {  // its text is a page of C++ frames
    throw DataError(std::string("the checkpoint is of another ") + key);
  }
}

template <typename Part>
void save_part(torch::serialize::OutputArchive& archive, const char* key, const Part& part) {
  torch::serialize::OutputArchive of_part;
  part.save(of_part);
  archive.write(key, of_part);
}

}  // namespace

std::string pack_state(std::int64_t epoch, const torch::nn::Module& network, const torch::optim::Optimizer& optimizer) {
  torch::serialize::OutputArchive archive;
  archive.write(kEpoch, c10::IValue(epoch));
  save_part(archive, kNetwork, network);
  save_part(archive, kOptimizer, optimizer);
  std::ostringstream stream;
  archive.save_to(stream);
  return std::move(stream).str();
}

TrainingState::TrainingState(const std::string& bytes, torch::Device device) {
  try {
    std::istringstream stream(bytes);
    archive_.load_from(stream, device);
    c10::IValue epoch;
    archive_.read(kEpoch, epoch);
    epoch_ = epoch.toInt();
  } catch (const c10::Error&) {
    throw DataError("the checkpoint holds something else than a training");
  }
}

void TrainingState::load_into(torch::nn::Module& network) { load_part(archive_, kNetwork, network); }

void TrainingState::load_into(torch::optim::Optimizer& optimizer) { load_part(archive_, kOptimizer, optimizer); }

}  // namespace fashion_mnist
