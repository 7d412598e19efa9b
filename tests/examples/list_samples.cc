// Prints the samples that this rank's loader gives in two epochs, one "epoch sample" a line: list_samples SIZE
// FILE_PREFIX
#include <lrun/lrun.h>
#include <torch/data/datasets/base.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

struct Numbers : torch::data::datasets::BatchDataset<Numbers, std::vector<std::size_t>> {
  explicit Numbers(std::size_t size) : size_(size) {}
  std::vector<std::size_t> get_batch(c10::ArrayRef<std::size_t> indices) override { return indices.vec(); }
  std::optional<std::size_t> size() const override { return size_; }

 private:
  std::size_t size_;
};

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  lrun::Session session;
  const auto loader = session.loader(Numbers(std::strtoul(argv[1], nullptr, 10)), {.batch_size = 5});
  std::ofstream out(argv[2] + std::to_string(session.rank()));
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (const std::vector<std::size_t>& batch : *loader) {
      for (const std::size_t sample : batch) out << epoch << ' ' << sample << '\n';
    }
  }
  return out.flush() ? 0 : 1;
}
