#include "dataset.h"

#include <algorithm>
#include <string>

#include "data_file.h"
#include "errors.h"
#include "idx.h"

namespace fashion_mnist {
namespace {

constexpr std::int64_t kSide = 28;
constexpr std::uint8_t kClasses = 10;

struct File {
  std::filesystem::path path;
  std::vector<std::uint8_t> content;
  IdxArray array;  // a view of content
};

File read(const std::filesystem::path& folder, const std::string& name, std::size_t dimensions) {
  File file{find_data_file(folder, name), {}, {}};
  file.content = read_data_file(file.path);
  try {
    file.array = parse_idx(file.content, dimensions);
  } catch (const DataError& error) {
    throw DataError("'" + file.path.string() + "' " + error.what());
  }
  return file;
}

void check(const File& images, const File& classes) {
  const std::vector<std::int64_t>& shape = images.array.shape;
  if (shape[1] != kSide || shape[2] != kSide) {
    throw DataError("'" + images.path.string() + "' holds images of " + std::to_string(shape[1]) + " x " +
                    std::to_string(shape[2]) + " pixels, not 28 x 28");
  }
  if (shape[0] != classes.array.shape[0]) {
    throw DataError("'" + images.path.string() + "' holds " + std::to_string(shape[0]) + " images, but '" +
                    classes.path.string() + "' " + std::to_string(classes.array.shape[0]) + " labels");
  }
  const std::uint8_t largest = *std::max_element(classes.array.values.begin(), classes.array.values.end());
  if (largest >= kClasses) {
    throw DataError("'" + classes.path.string() + "' holds the label " + std::to_string(largest) + "; 9 is the last");
  }
}

torch::Tensor to_tensor(const IdxArray& array) {
  return torch::tensor(c10::ArrayRef<std::uint8_t>(array.values.data(), array.values.size()), torch::kUInt8);
}

}  // namespace

Dataset::Dataset(const std::filesystem::path& folder, Part part, std::optional<std::int64_t> limit) {
  const std::string prefix = part == Part::kTrain ? "train" : "t10k";
  const File images = read(folder, prefix + "-images-idx3-ubyte", 3);
  const File classes = read(folder, prefix + "-labels-idx1-ubyte", 1);
  check(images, classes);
  images_ = to_tensor(images.array).view({-1, 1, kSide, kSide});
  classes_ = to_tensor(classes.array).to(torch::kInt64);
  if (limit && *limit < images_.size(0)) {
    images_ = images_.narrow(0, 0, *limit);
    classes_ = classes_.narrow(0, 0, *limit);
  }
}

Batch Dataset::get_batch(c10::ArrayRef<std::size_t> indices) {
  const std::vector<std::int64_t> rows(indices.begin(), indices.end());
  const torch::Tensor index = torch::tensor(rows);
  return {images_.index_select(0, index).to(torch::kFloat32).div_(255), classes_.index_select(0, index)};
}

std::optional<std::size_t> Dataset::size() const { return static_cast<std::size_t>(images_.size(0)); }

}  // namespace fashion_mnist
