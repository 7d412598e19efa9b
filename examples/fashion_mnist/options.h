#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

namespace fashion_mnist {

/// What the command line asks for.
struct Options {
  std::filesystem::path data = "/usr/share/datasets/fashion-mnist";
  std::int64_t epochs = 4;
  std::int64_t batch_size = 64;  ///< images of one rank in one step
  double learning_rate = 0.05;
  std::optional<std::uint64_t> seed;  ///< unset: the launcher's
  std::filesystem::path checkpoint;   ///< empty: none is written
  bool resume = false;
  std::optional<std::int64_t> limit;  ///< unset: all training images
  bool help = false;

  bool operator==(const Options&) const = default;
};

/// \param arguments  without the program's name
/// \throws UsageError  one line: what is wrong, what is allowed.
Options parse_options(std::span<const char* const> arguments);

/// What -h prints.
std::string help_text();

}  // namespace fashion_mnist
