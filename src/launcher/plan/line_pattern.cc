// In: the text of a regular expression. Out: matches in lines. parse_watch_rule() checks with it, LineWatch matches.
#include "plan/line_pattern.h"

#include <regex.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace lrun::launcher {
namespace {

constexpr std::size_t kMostParts = 2 * LinePattern::kMostBytes;

/// What the character at `at` of a pattern stands for.
struct Part {
  std::size_t bytes = 1;
  char literal = '\0';  ///< the character that it matches; NUL: anything else
};

/// The end of '[...]' that begins at `at`: a ']' right behind the '[' or '[^' is a member.
std::size_t end_of_bracket(std::string_view pattern, std::size_t at) {
  std::size_t end = at + 1;
  if (end < pattern.size() && pattern[end] == '^') ++end;
  if (end < pattern.size() && pattern[end] == ']') ++end;
  while (end < pattern.size() && pattern[end] != ']') {
    const bool opens_class = pattern[end] == '[' && end + 1 < pattern.size() &&
                             std::string_view(":.=").find(pattern[end + 1]) != std::string_view::npos;
    const std::size_t closed =
        opens_class ? pattern.find(std::string{pattern[end + 1], ']'}, end + 2) : std::string_view::npos;
    end = closed == std::string_view::npos ? end + 1 : closed + 2;
  }
  return std::min(end + 1, pattern.size());
}

/// The end of the group that begins at `at` with '('.
std::size_t end_of_group(std::string_view pattern, std::size_t at) {
  int depth = 0;
  while (at < pattern.size()) {
    const char character = pattern[at];
    if (character == '[') {
      at = end_of_bracket(pattern, at);
      continue;
    }
    at += character == '\\' ? std::size_t{2} : std::size_t{1};
    if (character == '(') ++depth;
    if (character == ')' && --depth == 0) break;
  }
  return std::min(at, pattern.size());
}

Part part_at(std::string_view pattern, std::size_t at) {
  const char character = pattern[at];
  if (character == '(') return {end_of_group(pattern, at) - at};
  if (character == '[') return {end_of_bracket(pattern, at) - at};
  if (character == '\\') {
    if (at + 1 == pattern.size()) return {1};
    const bool is_quoted = std::ispunct(static_cast<unsigned char>(pattern[at + 1])) != 0 &&
                           std::string_view("<>`'").find(pattern[at + 1]) == std::string_view::npos;
    return {2, is_quoted ? pattern[at + 1] : '\0'};
  }
  return {1, std::string_view(".^$|)").find(character) == std::string_view::npos ? character : '\0'};
}

/// For each branch of a pattern the longest text that its matches have; groups are not searched for one. Empty where a
/// branch has none.
std::vector<std::string> literals_of(std::string_view pattern) {
  std::vector<std::string> literals(1);
  std::string run;
  for (std::size_t at = 0; at < pattern.size();) {
    if (pattern[at] == '|') {
      literals.emplace_back();
      run.clear();
      ++at;
      continue;
    }
    const Part part = part_at(pattern, at);
    const std::size_t behind = at + part.bytes;
    at = std::min(pattern.find_first_not_of("*+?", behind), pattern.size());
    const bool is_counted = at != behind;
    run = part.literal == '\0' || is_counted ? std::string() : run + part.literal;
    if (run.size() > literals.back().size()) literals.back() = run;
  }
  const bool lacks_one = std::any_of(literals.begin(), literals.end(), [](const auto& text) { return text.empty(); });
  return lacks_one ? std::vector<std::string>() : literals;
}

/// Outside of brackets: `wanted` is asked with the rest of the pattern.
template <class Wanted>
bool has_outside_brackets(std::string_view pattern, const Wanted& wanted) {
  for (std::size_t at = 0; at < pattern.size();) {
    if (pattern[at] == '[') {
      at = end_of_bracket(pattern, at);
      continue;
    }
    if (wanted(pattern.substr(at))) return true;
    at += pattern[at] == '\\' ? std::size_t{2} : std::size_t{1};
  }
  return false;
}

bool refers_back(std::string_view rest) {
  return rest.size() > 1 && rest[0] == '\\' && rest[1] >= '1' && rest[1] <= '9';
}
bool is_class_of_perl(std::string_view rest) {
  return rest.size() > 1 && rest[0] == '\\' && (rest[1] == 'd' || rest[1] == 'D');
}
bool is_group_of_perl(std::string_view rest) { return rest.starts_with("(?"); }
bool is_count(std::string_view rest) { return rest[0] == '{'; }
bool is_counted_twice(std::string_view rest) {
  constexpr std::string_view kCounts = "*+?";
  return rest.size() > 1 && kCounts.find(rest[0]) != kCounts.npos && kCounts.find(rest[1]) != kCounts.npos;
}

/// The parts of the compiled pattern: libc compiles what stands in front of '+' twice, also within another '+'.
std::size_t weight_of(std::string_view pattern) {
  std::size_t weight = 0;
  for (std::size_t at = 0; at < pattern.size();) {
    const Part part = part_at(pattern, at);
    const bool is_group = pattern[at] == '(' && part.bytes > 2;
    const std::size_t own = is_group ? weight_of(pattern.substr(at + 1, part.bytes - 2)) : 1;
    at += part.bytes;
    weight += at < pattern.size() && pattern[at] == '+' ? 2 * own : own;
  }
  return weight;
}

}  // namespace

struct LinePattern::Compiled {
  Compiled() = default;
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  ~Compiled() {
    if (made) ::regfree(&expression);
  }
  regex_t expression{};
  bool made = false;
};

std::variant<LinePattern, LinePattern::Problem> LinePattern::make(std::string_view text) {
  if (text.empty()) return Problem{"the pattern is empty", "for example 'loss=([^ ]+)'"};
  if (text.size() > kMostBytes) return Problem{"the pattern is longer than 500 bytes", "search for less of the line"};
  if (text.find('\0') != std::string_view::npos) return Problem{"the pattern has a NUL byte", "leave it out"};
  if (has_outside_brackets(text, refers_back)) {
    return Problem{"a pattern cannot refer back to a group", "write the group's pattern once more"};
  }
  if (has_outside_brackets(text, is_class_of_perl)) {
    return Problem{"'\\d' and '\\D' are not known in a pattern", "write '[0-9]' or '[^0-9]'"};
  }
  if (has_outside_brackets(text, is_group_of_perl)) {
    return Problem{"'(?' is not known in a pattern", "write a plain group: 'loss=([^ ]+)'"};
  }
  if (has_outside_brackets(text, is_count)) {
    return Problem{"counts in braces are not known in a pattern", "write '+' or '*', or '\\{' for the character"};
  }
  if (has_outside_brackets(text, is_counted_twice)) {
    return Problem{"two of '*', '+', '?' stand side by side in a pattern", "one of them says it"};
  }
  if (weight_of(text) > kMostParts) return Problem{"too many '+' stand within each other", "write '*' for some"};
  auto compiled = std::make_shared<Compiled>();
  const int error = ::regcomp(&compiled->expression, std::string(text).c_str(), REG_EXTENDED);
  if (error != 0) {
    std::array<char, 200> words{};
    (void)::regerror(error, &compiled->expression, words.data(), words.size());
    return Problem{std::string("the pattern is not regular: ") + words.data(), "a backslash quotes: '\\(', '\\['"};
  }
  compiled->made = true;
  LinePattern pattern;
  pattern.compiled_ = std::move(compiled);
  pattern.literals_ = literals_of(text);
  return pattern;
}

std::optional<std::string_view> LinePattern::find(std::string_view line) const {
  const std::string text(line);  // AddressSanitizer wants to see its end
  std::array<regmatch_t, 2> matches{};
  matches[0].rm_so = 0;
  matches[0].rm_eo = static_cast<regoff_t>(line.size());
  if (::regexec(&compiled_->expression, text.c_str(), matches.size(), matches.data(), REG_STARTEND) != 0) {
    return std::nullopt;
  }
  const regmatch_t& match = matches[1].rm_so >= 0 ? matches[1] : matches[0];
  return line.substr(static_cast<std::size_t>(match.rm_so), static_cast<std::size_t>(match.rm_eo - match.rm_so));
}

bool LinePattern::has_group() const { return compiled_->expression.re_nsub > 0; }

}  // namespace lrun::launcher
