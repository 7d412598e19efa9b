#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace lrun::launcher {

/// A regular expression for single lines, which never takes longer than its size times that of the line, and no memory
/// that grows: libc's takes both without a bound, and the launcher has one thread.
///
/// POSIX extended, and of Perl's '\d \w \s \D \W \S' and '(?:'; bytes are characters. Of several matches the first one
/// counts, and within it the earlier choice.
class LinePattern {
 public:
  static constexpr std::size_t kMostBytes = 500;
  static constexpr std::size_t kMostSteps = 1000;  ///< of the program that carries it out

  /// Why a text is no pattern, and what to write instead.
  struct Problem {
    std::string what;
    std::string hint;
  };

  static std::variant<LinePattern, Problem> make(std::string_view text);

  /// The part of `line` that its first group matches, else that of the whole match. Empty: the line does not match.
  [[nodiscard]] std::optional<std::string_view> find(std::string_view line) const;

  [[nodiscard]] bool has_group() const { return has_group_; }
  /// The first group could be all of `value`. \pre has_group()
  [[nodiscard]] bool group_may_be(std::string_view value) const;
  /// Every line with a match has one of these texts, which are quick to search for; empty: none are known.
  [[nodiscard]] const std::vector<std::string>& literals() const { return literals_; }

 private:
  friend class PatternCompiler;
  friend class PatternRun;
  using Bytes = std::bitset<256>;

  /// One step of the program that carries the pattern out.
  struct Step {
    enum class Kind : std::uint8_t {
      kByte,   ///< one of the bytes `which`, then the next step
      kSplit,  ///< goes on at `first`, and if that fails at `second`
      kMark,   ///< notes the place as `which`, then the next step
      kBegin,  ///< the line begins here
      kEnd,    ///< the line ends here
      kMatch,
    };
    Kind kind = Kind::kMatch;
    std::uint16_t first = 0;
    std::uint16_t second = 0;
    std::uint16_t which = 0;
  };

  std::vector<Step> steps_;
  std::vector<Bytes> sets_;
  Bytes beginnings_;  ///< bytes with which a match may begin; all where it may be empty
  std::vector<std::string> literals_;
  bool has_group_ = false;
  std::string group_;  ///< the text of the first group
};

}  // namespace lrun::launcher
