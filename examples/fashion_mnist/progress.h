#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace fashion_mnist {

/// The results of one epoch, over all ranks.
struct EpochResult {
  std::int64_t epoch = 0;   ///< from 1
  double loss = 0;          ///< mean over the training images
  double accuracy = 0;      ///< on the test images, 0 to 1
  double images_per_s = 0;  ///< training only, without the test

  bool operator==(const EpochResult&) const = default;
};

/// The lines of the table that rank 0 prints.
std::string table_header();
std::string table_row(const EpochResult& result);

/// The last line of a training, for example "final test accuracy: 90.12 %".
std::string final_line(double accuracy);

/// A bar of `width` columns, for example "epoch 2 [=====>    ]  55 %  loss 0.4312".
std::string bar_text(std::int64_t epoch, std::int64_t step, std::int64_t steps, double loss, int width);

/// A bar that redraws itself in place on a terminal, at most ten times a second; silent elsewhere.
class ProgressBar {
 public:
  /// \param stream  borrowed; nothing is drawn unless it is a terminal and `wanted`.
  ProgressBar(std::FILE* stream, bool wanted);

  void show(std::int64_t epoch, std::int64_t step, std::int64_t steps, double loss);
  /// Wipes the bar, so that a line can be printed.
  void clear();

 private:
  std::FILE* stream_;
  bool active_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point next_{};
};

}  // namespace fashion_mnist
