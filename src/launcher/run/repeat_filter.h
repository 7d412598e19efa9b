#pragma once

#include <bit>
#include <string>

namespace lrun::launcher {

/// Chooses which of the texts that come at regular intervals are worth a line: a new text at once, a repeated one ever
/// more seldom (the first, second, fourth, eighth … time). A long wait is then seen to go on, and fills no screen.
class RepeatFilter {
 public:
  bool is_worth_a_line(const std::string& text) {
    times_ = text == last_ ? times_ + 1 : 1;
    last_ = text;
    return std::has_single_bit(times_);
  }

 private:
  std::string last_;
  unsigned times_ = 0;
};

}  // namespace lrun::launcher
