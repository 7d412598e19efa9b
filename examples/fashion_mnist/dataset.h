#pragma once

#include <torch/data/datasets/base.h>
#include <torch/data/example.h>

#include <cstdint>
#include <filesystem>
#include <optional>

namespace fashion_mnist {

/// Images as numbers from 0 to 1, and their classes from 0 to 9.
using Batch = torch::data::Example<>;  // data: (batch, 1, 28, 28) float32; target: (batch) int64

enum class Part { kTrain, kTest };

/// The Fashion-MNIST images of one part, in memory as bytes; batches become floats when they are asked for.
class Dataset : public torch::data::datasets::BatchDataset<Dataset, Batch> {
 public:
  /// \param limit  only the first so many images
  /// \throws DataError  a file is missing, torn or holds something else; names it.
  Dataset(const std::filesystem::path& folder, Part part, std::optional<std::int64_t> limit = std::nullopt);

  Batch get_batch(c10::ArrayRef<std::size_t> indices) override;
  [[nodiscard]] std::optional<std::size_t> size() const override;

 private:
  torch::Tensor images_;   // (images, 1, 28, 28), uint8
  torch::Tensor classes_;  // (images), int64
};

}  // namespace fashion_mnist
