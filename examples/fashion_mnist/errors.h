#pragma once

#include <stdexcept>

namespace fashion_mnist {

/// The command line is wrong; the text is one line that says what is allowed.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A data file or a checkpoint is missing or damaged; the text is one line that names the file.
class DataError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace fashion_mnist
