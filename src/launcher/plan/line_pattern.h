#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace lrun::launcher {

/// A regular expression for single lines: POSIX extended, carried out by libc, which takes time in proportion to the
/// line for what make() lets through.
class LinePattern {
 public:
  static constexpr std::size_t kMostBytes = 500;

  /// Why a text is no pattern, and what to write instead.
  struct Problem {
    std::string what;
    std::string hint;
  };

  /// Refuses what would take long to match or much memory: back-references and repeated counts.
  static std::variant<LinePattern, Problem> make(std::string_view text);

  /// The group of a match that has the value: the first one, else the whole match. Empty: the line does not match.
  /// \param line  without its end; a NUL byte in it is a byte like any other
  [[nodiscard]] std::optional<std::string_view> find(std::string_view line) const;

  [[nodiscard]] bool has_group() const;
  /// Every line with a match has one of these texts, which are quick to search for; empty: none are known.
  [[nodiscard]] const std::vector<std::string>& literals() const { return literals_; }

 private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled_;  // copies match alike
  std::vector<std::string> literals_;
};

}  // namespace lrun::launcher
