#include "base/shell_words.h"

#include <cstddef>
#include <utility>

namespace lrun::inline core {
namespace {

class ShellSplitter {
 public:
  explicit ShellSplitter(std::string_view text) : text_(text) {}

  std::optional<std::vector<std::string>> run() {
    while (next_ < text_.size()) {
      const char letter = text_[next_++];
      if (letter == ' ' || letter == '\t' || letter == '\n') {
        end_word();
      } else if (!take(letter)) {
        return std::nullopt;
      }
    }
    end_word();
    return std::move(words_);
  }

 private:
  /// \return false when the text ends too early.
  bool take(char letter) {
    in_word_ = true;
    if (letter == '\'') return take_single_quoted();
    if (letter == '"') return take_double_quoted();
    if (letter != '\\') {
      word_ += letter;
      return true;
    }
    if (next_ == text_.size()) return false;
    if (text_[next_] != '\n') word_ += text_[next_];  // a backslash at a line's end joins the lines
    ++next_;
    return true;
  }

  bool take_single_quoted() {
    const std::size_t end = text_.find('\'', next_);
    if (end == std::string_view::npos) return false;
    word_ += text_.substr(next_, end - next_);
    next_ = end + 1;
    return true;
  }

  bool take_double_quoted() {
    constexpr std::string_view kProtected = "\"\\$`";
    for (; next_ < text_.size(); ++next_) {
      if (text_[next_] == '"') {
        ++next_;
        return true;
      }
      const bool backslash = text_[next_] == '\\' && next_ + 1 < text_.size();
      if (backslash && kProtected.find(text_[next_ + 1]) != std::string_view::npos) ++next_;
      word_ += text_[next_];
    }
    return false;
  }

  void end_word() {
    if (in_word_) words_.push_back(std::move(word_));
    word_.clear();
    in_word_ = false;
  }

  std::string_view text_;
  std::size_t next_ = 0;
  std::string word_;
  bool in_word_ = false;  ///< also an empty one, in quotes
  std::vector<std::string> words_;
};

}  // namespace

std::optional<std::vector<std::string>> split_shell_words(std::string_view text) { return ShellSplitter(text).run(); }

std::string quoted_for_shell(std::string_view word) {
  std::string text = "'";
  for (const char letter : word) text += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return text + "'";
}

std::string shell_line(const std::vector<std::string>& words) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line += ' ';
    const bool is_plain = !word.empty() && word.find_first_not_of(kPlain) == std::string::npos;
    line += is_plain ? word : quoted_for_shell(word);
  }
  return line;
}

}  // namespace lrun::inline core
