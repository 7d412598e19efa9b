#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace lrun::launcher {

/// The unfinished line at the end of a terminal: a progress bar of a worker that is shown while it moves, or a line
/// that another program has left there. It is wiped before anything else is written. A value.
class LiveLine {
 public:
  /// The line stands on the terminal.
  [[nodiscard]] bool is_shown() const { return is_shown_; }
  [[nodiscard]] const std::string& text() const { return text_; }

  void show(std::string text) {
    text_ = std::move(text);
    is_shown_ = !text_.empty();
  }
  /// Another program has changed the line. \param open  there is one \param drawing  draws it again; empty: nothing
  /// does
  void set_other(bool open, std::string drawing) {
    redrawn_ = drawing;
    text_ = std::move(drawing);
    is_shown_ = open;
  }
  /// Bytes that wipe the line, which is not shown any more. A line that cannot be drawn again stays, and a new one is
  /// begun below it.
  std::string_view wipe() {
    is_shown_ = false;
    return text_.empty() ? "\n" : "\r\x1b[K";
  }
  /// The other program's line was wiped and is to be drawn again. Empty: there is none.
  [[nodiscard]] std::string to_redraw() const { return is_shown_ ? std::string() : redrawn_; }

 private:
  std::string text_;     ///< as it is shown; empty: another program's, which cannot be drawn again
  std::string redrawn_;  ///< of another program, drawn again when it was wiped; empty: there is none
  bool is_shown_ = false;
};

}  // namespace lrun::launcher
