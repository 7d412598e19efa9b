#include "dataset.h"

#include <gtest/gtest.h>

#include "errors.h"
#include "example_files.h"
#include "idx_bytes.h"

namespace fashion_mnist {
namespace {

std::string pixels(std::size_t images) {
  std::string values;
  for (std::size_t image = 0; image < images; ++image) values += std::string(28 * 28, static_cast<char>(image * 51));
  return values;
}

void write_train(const TemporaryFolder& folder, const std::string& images, const std::string& labels) {
  write_bytes(folder / "train-images-idx3-ubyte", images);
  write_bytes(folder / "train-labels-idx1-ubyte", labels);
}

std::string refusal(const TemporaryFolder& folder) {
  return text_of<DataError>([&] { const Dataset dataset(folder.path(), Part::kTrain); });
}

TEST(Dataset, GivesImagesBetweenZeroAndOneInTheOrderAskedFor) {
  const TemporaryFolder folder;
  write_train(folder, idx_bytes({3, 28, 28}, pixels(3)), idx_bytes({3}, std::string("\x05\x09\x00", 3)));
  Dataset dataset(folder.path(), Part::kTrain);
  ASSERT_EQ(dataset.size(), 3u);

  const std::vector<std::size_t> indices{2, 0};
  const Batch batch = dataset.get_batch(indices);
  EXPECT_EQ(batch.data.sizes(), (std::vector<std::int64_t>{2, 1, 28, 28}));
  EXPECT_FLOAT_EQ(batch.data[0].min().item<float>(), 102.0f / 255);
  EXPECT_FLOAT_EQ(batch.data[1].max().item<float>(), 0);
  EXPECT_EQ(batch.target[0].item<std::int64_t>(), 0);
  EXPECT_EQ(batch.target[1].item<std::int64_t>(), 5);
}

TEST(Dataset, StopsAtTheLimit) {
  const TemporaryFolder folder;
  write_train(folder, idx_bytes({3, 28, 28}, pixels(3)), idx_bytes({3}, std::string(3, '\1')));
  EXPECT_EQ(Dataset(folder.path(), Part::kTrain, 2).size(), 2u);
  EXPECT_EQ(Dataset(folder.path(), Part::kTrain, 9).size(), 3u);
}

TEST(Dataset, NamesTheFileThatDoesNotFit) {
  const TemporaryFolder folder;
  const std::string images = "'" + (folder / "train-images-idx3-ubyte").string() + "'";
  const std::string labels = "'" + (folder / "train-labels-idx1-ubyte").string() + "'";
  write_train(folder, idx_bytes({1, 28, 27}, std::string(28 * 27, 'x')), idx_bytes({1}, "\1"));
  EXPECT_EQ(refusal(folder), images + " holds images of 28 x 27 pixels, not 28 x 28");
  write_train(folder, idx_bytes({2, 28, 28}, pixels(2)), idx_bytes({1}, "\1"));
  EXPECT_EQ(refusal(folder), images + " holds 2 images, but " + labels + " 1 labels");
  write_train(folder, idx_bytes({1, 28, 28}, pixels(1)), idx_bytes({1}, "\n"));
  EXPECT_EQ(refusal(folder), labels + " holds the label 10; 9 is the last");
  write_train(folder, idx_bytes({1, 28, 28}, "cut"), idx_bytes({1}, "\1"));
  EXPECT_EQ(refusal(folder), images + " is cut off: its header promises more than the 3 bytes that follow it");
}

}  // namespace
}  // namespace fashion_mnist
