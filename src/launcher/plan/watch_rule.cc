// In: the text behind --watch. Out: a rule, or what is wrong with it. The option's row reads it.
#include "plan/watch_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "base/split.h"

namespace lrun::launcher {
namespace {

using Problem = LinePattern::Problem;

constexpr std::string_view kArrow = "=>";
constexpr const char* kAllTests =
    "tests are nan, inf, '> 100', '< 0', '3x' and 'silent 5m'; reactions warn, stop, restart";

/// Words between blanks and commas; '>' and '<' are words of their own.
std::vector<std::string> words_of_rule(std::string_view text) {
  std::vector<std::string> words;
  bool open = false;
  for (const char character : text) {
    if (character == ' ' || character == '\t' || character == ',') {
      open = false;
    } else if (character == '>' || character == '<') {
      words.emplace_back(1, character);
      open = false;
    } else {
      if (!open) words.emplace_back();
      words.back() += character;
      open = true;
    }
  }
  return words;
}

std::optional<double> finite_number(const std::string& text) {
  const bool begins_well = !text.empty() && std::string_view("0123456789.-+").find(text[0]) != std::string_view::npos;
  if (!begins_well || text.find_first_of("xXnN") != std::string::npos) return std::nullopt;
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const bool is_whole = *end == '\0' && end != text.c_str();
  return is_whole && std::isfinite(number) ? std::optional(number) : std::nullopt;
}

/// Reads the tests and the reaction one word after the other.
class RuleReader {
 public:
  explicit RuleReader(std::vector<std::string> words) : words_(std::move(words)) {}

  std::optional<Problem> read(WatchRule& rule) {
    while (at_ < words_.size()) {
      const std::size_t begin = at_;
      const std::string word = lower_case(words_[at_++]);
      if (const auto reaction = value_in(kWatchReactions, word)) {
        if (at_ < words_.size()) return behind_reaction(word, words_[at_]);
        rule.reaction = *reaction;
        return std::nullopt;
      }
      const std::optional<WatchTest> test = read_test(word);
      if (!test) return no_test(begin);
      rule.tests.push_back(*test);
    }
    return std::nullopt;
  }

 private:
  static Problem behind_reaction(const std::string& reaction, const std::string& next) {
    if (value_in(kWatchReactions, next)) {
      return {fmt::format("'{}' and '{}' are two reactions", reaction, next), "give a rule for each"};
    }
    return {fmt::format("'{}' stands behind the reaction", next), fmt::format("write '{} {}'", next, reaction)};
  }

  std::optional<WatchTest> read_test(const std::string& word) {
    if (word == "nan") return WatchTest{WatchTest::Kind::kNan};
    if (word == "inf") return WatchTest{WatchTest::Kind::kInf};
    if (word == ">" || word == "<") {
      const std::optional<double> limit = finite_number(next());
      return limit ? std::optional(WatchTest{word == ">" ? WatchTest::Kind::kAbove : WatchTest::Kind::kBelow, *limit})
                   : std::nullopt;
    }
    if (word == "silent") {
      const std::optional<Duration> time = parse_duration(next());
      const bool is_time = time && *time > Duration::zero();
      return is_time ? std::optional(WatchTest{WatchTest::Kind::kSilent, 0, *time}) : std::nullopt;
    }
    if (!word.ends_with('x')) return std::nullopt;
    const std::optional<double> times = finite_number(word.substr(0, word.size() - 1));
    return times && *times > 1 ? std::optional(WatchTest{WatchTest::Kind::kJump, *times}) : std::nullopt;
  }

  std::string next() { return at_ < words_.size() ? words_[at_++] : std::string(); }

  /// The words from `begin` on that were read.
  [[nodiscard]] Problem no_test(std::size_t begin) const {
    std::string words = words_[begin];
    for (std::size_t i = begin + 1; i < at_; ++i) words += " " + words_[i];
    const bool is_of_pattern = words.find_first_of("([\\") != std::string::npos;
    return {fmt::format("'{}' is no test and no reaction", words),
            is_of_pattern ? "write '=[>]' for a '=>' of the pattern itself" : kAllTests};
  }

  std::vector<std::string> words_;
  std::size_t at_ = 0;
};

bool asks_for_number(const WatchTest& test) {
  return test.kind != WatchTest::Kind::kSeen && test.kind != WatchTest::Kind::kSilent;
}

/// Where a rule's tests begin without an arrow before them, as in 'loss=([^ ]+) > 100'; npos: nowhere.
std::size_t place_of_lost_arrow(std::string_view text) {
  for (std::size_t at = 0; at != std::string_view::npos; at = text.find(' ', at + 1)) {
    std::string_view rest = text.substr(at);
    const std::size_t begin = rest.find_first_not_of(" -=");  // '->', '= >'
    rest.remove_prefix(std::min(begin, rest.size()));
    WatchRule rule;
    const bool is_written = rest.find_first_not_of("> \t") != std::string_view::npos;
    for (const std::string_view tests : {rest, rest.substr(std::min(rest.find_first_not_of('>'), rest.size()))}) {
      if (is_written && !RuleReader(words_of_rule(tests)).read(rule)) return at;
    }
  }
  return std::string_view::npos;
}

std::optional<Problem> problem_of_lost_arrow(std::string_view text) {
  const std::size_t at = place_of_lost_arrow(text);
  if (at == std::string_view::npos) return std::nullopt;
  if (at == 0) return Problem{fmt::format("'{}' is no pattern", text), "for example 'loss=([^ ]+) => nan'"};
  return Problem{fmt::format("a '=>' is missing behind '{}'", text.substr(0, at)),
                 "for example 'loss=([^ ]+) => > 100'"};
}

/// A group of digits never matches 'nan'.
std::optional<Problem> problem_of_group(const WatchRule& rule, const LinePattern& pattern) {
  const auto may_be_one_of = [&](std::initializer_list<std::string_view> words) {
    return std::any_of(words.begin(), words.end(), [&](std::string_view word) { return pattern.group_may_be(word); });
  };
  for (const WatchTest& test : rule.tests) {
    const bool lacks_nan = test.kind == WatchTest::Kind::kNan && !may_be_one_of({"nan", "NaN", "NAN"});
    const bool lacks_inf =
        test.kind == WatchTest::Kind::kInf && !may_be_one_of({"inf", "Inf", "INF", "-inf", "infinity"});
    if (!lacks_nan && !lacks_inf) continue;
    return Problem{fmt::format("the pattern's group cannot be '{}'", lacks_nan ? "nan" : "inf"),
                   "for example 'loss=([^ ]+)', or a test such as '=> > 100'"};
  }
  return std::nullopt;
}

}  // namespace

std::variant<WatchRule, Problem> parse_watch_rule(std::string_view text) {
  text = trimmed(text);
  WatchRule rule;
  rule.text = text;
  const std::size_t arrow = text.rfind(kArrow);
  const bool has_arrow = arrow != std::string_view::npos;
  rule.pattern = trimmed(text.substr(0, arrow));
  auto made = LinePattern::make(rule.pattern);
  if (const auto* const problem = std::get_if<Problem>(&made)) return *problem;
  const auto& pattern = std::get<LinePattern>(made);
  if (!has_arrow) {
    if (std::optional<Problem> problem = problem_of_lost_arrow(text)) return *std::move(problem);
  } else if (std::optional<Problem> problem =
                 RuleReader(words_of_rule(text.substr(arrow + kArrow.size()))).read(rule)) {
    return *std::move(problem);
  }
  if (rule.tests.empty()) {
    rule.tests = pattern.has_group() ? std::vector<WatchTest>{{WatchTest::Kind::kNan}, {WatchTest::Kind::kInf}}
                                     : std::vector<WatchTest>{{WatchTest::Kind::kSeen}};
  }
  if (!pattern.has_group() && std::any_of(rule.tests.begin(), rule.tests.end(), asks_for_number)) {
    return Problem{"the pattern has no group in parentheses with the number", "for example 'loss=([^ ]+) => nan'"};
  }
  if (std::optional<Problem> problem = problem_of_group(rule, pattern)) return *std::move(problem);
  return rule;
}

}  // namespace lrun::launcher
