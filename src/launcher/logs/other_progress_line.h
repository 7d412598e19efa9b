#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lrun::launcher {

/// The unfinished line at the end of a terminal on which a program of its own draws, such as a debugger's prompt with
/// what a person has typed behind it: enough to be wiped before other lines and to be drawn again after them. A value.
class OtherProgressLine {
 public:
  /// Call it with the bytes that the terminal gets next. \param columns  its width
  void take(std::string_view bytes, int columns);
  /// The line is over, or another program has the terminal.
  void forget() { *this = {}; }
  /// The line stays on the terminal, and is not drawn again.
  void leave() {
    can_be_drawn_ = false;
    bytes_.clear();
  }

  /// Something stands in the line.
  [[nodiscard]] bool open() const { return furthest_ > 0; }
  /// The bytes that draw it again from the first column, cursor included; empty when that is impossible: the line is
  /// longer than one row, or moves beyond it.
  [[nodiscard]] std::string drawing() const { return open() && can_be_drawn_ ? bytes_ : std::string(); }

 private:
  static constexpr std::size_t kMostBytes = 4096;

  std::size_t take_one(std::string_view rest);
  void move(int columns);

  std::string bytes_;  ///< since the last newline
  std::string cut_;    ///< the beginning of a sequence
  int column_ = 0;
  int furthest_ = 0;  ///< the column behind the last character that was written
  bool can_be_drawn_ = true;
};

}  // namespace lrun::launcher
