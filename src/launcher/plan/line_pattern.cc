// In: the text of a regular expression. Out: matches in lines. parse_watch_rule() checks with it, LineWatch matches.
// Thompson's construction, carried out by all its threads at once as Pike does it (https://swtch.com/~rsc/regexp/).
#include "plan/line_pattern.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace lrun::launcher {
namespace {

constexpr std::string_view kCounts = "*+?{";
constexpr std::uint16_t kGroupBegin = 2;  // marks 0 and 1 are those of the whole match
constexpr std::size_t kMostDepth = 50;    // of groups

struct PatternError {
  LinePattern::Problem problem;
};

[[noreturn]] void refuse_pattern(std::string what, std::string hint) {
  throw PatternError{{std::move(what), std::move(hint)}};
}

template <class Belongs>
std::bitset<256> bytes_that(const Belongs& belongs) {
  std::bitset<256> bytes;
  for (int byte = 0; byte < 256; ++byte) bytes[static_cast<std::size_t>(byte)] = belongs(byte);
  return bytes;
}

bool is_word(int byte) { return std::isalnum(byte) != 0 || byte == '_'; }

/// '\d', '\W' and their like. Empty: the letter stands for no class.
std::optional<std::bitset<256>> class_of_letter(char letter) {
  const auto small = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  std::bitset<256> bytes;
  if (small == 'd') bytes = bytes_that([](int byte) { return std::isdigit(byte) != 0; });
  if (small == 'w') bytes = bytes_that(is_word);
  if (small == 's') bytes = bytes_that([](int byte) { return std::isspace(byte) != 0; });
  if (bytes.none()) return std::nullopt;
  return small == letter ? bytes : ~bytes;
}

/// '[:alpha:]' without its brackets and colons.
std::bitset<256> class_named(std::string_view name) {
  using Test = int (*)(int);
  constexpr std::array<std::pair<std::string_view, Test>, 8> kClasses{{{"alpha", std::isalpha},
                                                                       {"digit", std::isdigit},
                                                                       {"alnum", std::isalnum},
                                                                       {"space", std::isspace},
                                                                       {"upper", std::isupper},
                                                                       {"lower", std::islower},
                                                                       {"punct", std::ispunct},
                                                                       {"xdigit", std::isxdigit}}};
  const auto found = std::find_if(kClasses.begin(), kClasses.end(), [&](const auto& one) { return one.first == name; });
  if (found == kClasses.end()) {
    refuse_pattern("there is no class '[:" + std::string(name) + ":]'",
                   "alpha, digit, alnum, space, upper, lower, punct, xdigit");
  }
  return bytes_that([test = found->second](int byte) { return test(byte) != 0; });
}

}  // namespace

/// Reads a pattern and writes its program, one function for each level of its grammar.
class PatternCompiler {
 public:
  explicit PatternCompiler(std::string_view text) : text_(text) {}

  LinePattern compile() {
    add({Step::Kind::kMark, 0, 0, 0});
    choice(0);
    if (at_ < text_.size()) refuse_pattern("a ')' closes nothing", "write '\\)' for the character");
    add({Step::Kind::kMark, 0, 0, 1});
    add({Step::Kind::kMatch});
    pattern_.beginnings_ = beginnings();
    take_literals();
    return std::move(pattern_);
  }

 private:
  using Step = LinePattern::Step;
  using Bytes = LinePattern::Bytes;

  [[nodiscard]] bool ended() const { return at_ == text_.size(); }
  [[nodiscard]] std::uint16_t here() const { return static_cast<std::uint16_t>(pattern_.steps_.size()); }
  Step& step(std::uint16_t at) { return pattern_.steps_[at]; }

  void add(const Step& step) {
    if (pattern_.steps_.size() == LinePattern::kMostSteps)
      refuse_pattern("the pattern is too large", "count less, or search for less");
    pattern_.steps_.push_back(step);
  }

  void insert_split(std::uint16_t at) {
    add({});
    auto& steps = pattern_.steps_;
    std::move_backward(steps.begin() + at, steps.end() - 1, steps.end());
    for (auto moved = steps.begin() + at + 1; moved != steps.end(); ++moved) {
      if (moved->kind != Step::Kind::kSplit) continue;
      if (moved->first >= at) ++moved->first;
      if (moved->second >= at) ++moved->second;
    }
    step(at) = {Step::Kind::kSplit, static_cast<std::uint16_t>(at + 1), 0, 0};
  }

  /// 'a|b'
  void choice(std::size_t depth) {
    if (depth > kMostDepth) refuse_pattern("groups stand within each other too often", "leave some parentheses out");
    std::vector<std::uint16_t> ends;
    std::uint16_t branch = here();
    sequence(depth);
    while (!ended() && text_[at_] == '|') {
      ++at_;
      insert_split(branch);
      ends.push_back(here());
      add({Step::Kind::kSplit});  // leaves the choice: both ways are its end
      step(branch).second = here();
      branch = here();
      sequence(depth);
    }
    for (const std::uint16_t end : ends) step(end).first = step(end).second = here();
  }

  void sequence(std::size_t depth) {
    while (!ended() && text_[at_] != '|' && text_[at_] != ')') counted(depth);
    if (depth == 0) end_branch();
  }

  /// An atom and its count.
  void counted(std::size_t depth) {
    const std::uint16_t begin = here();
    const std::size_t text_begin = at_;
    const std::optional<char> literal = atom(depth);
    const bool is_counted = !ended() && kCounts.find(text_[at_]) != std::string_view::npos;
    if (depth == 0 && literal && !is_counted) {
      run_ += *literal;
    } else if (depth == 0) {
      end_run();
    }
    if (!is_counted) return;
    const char count = text_[at_];
    if (count == '{') return braces(depth, begin, text_begin);
    ++at_;
    if (count == '+') repeat(begin);
    if (count == '*') repeat_or_skip(begin);
    if (count == '?') skip(begin);
    if (!ended() && kCounts.find(text_[at_]) != std::string_view::npos) {
      refuse_pattern("two of '*', '+', '?', '{' stand side by side", "write one of them");
    }
  }

  void repeat(std::uint16_t begin) {
    const std::uint16_t split = here();
    add({Step::Kind::kSplit, begin, static_cast<std::uint16_t>(split + 1), 0});
  }
  void skip(std::uint16_t begin) {
    insert_split(begin);
    step(begin).second = here();
  }
  void repeat_or_skip(std::uint16_t begin) {
    repeat(begin);
    skip(begin);
  }

  /// '{2}', '{2,}', '{2,5}': the atom is compiled again for each.
  void braces(std::size_t depth, std::uint16_t begin, std::size_t text_begin) {
    ++at_;
    const std::size_t least = number();
    std::optional<std::size_t> most = least;
    if (!ended() && text_[at_] == ',') {
      ++at_;
      most = !ended() && text_[at_] == '}' ? std::nullopt : std::optional(number());
    }
    if (ended() || text_[at_] != '}' || (most && *most < least) || most == 0U) {
      refuse_pattern("there is no such count in braces", "write '{2}', '{2,}' or '{2,5}', or '\\{' for the character");
    }
    const std::size_t behind = at_ + 1;
    const auto again = [&] {
      at_ = text_begin;
      const std::uint16_t copy = here();
      (void)atom(depth);
      return copy;
    };
    for (std::size_t i = 1; i < least; ++i) again();
    if (least == 0) pattern_.steps_.resize(begin);
    if (!most) {
      repeat_or_skip(again());
    } else {
      for (std::size_t i = least; i < *most; ++i) skip(again());
    }
    at_ = behind;
  }

  std::size_t number() {
    constexpr std::size_t kMost = 1000;
    std::size_t value = 0;
    const std::size_t begin = at_;
    for (; !ended() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0; ++at_) {
      value = std::min(kMost, 10 * value + static_cast<std::size_t>(text_[at_] - '0'));
    }
    if (at_ == begin) refuse_pattern("a count in braces has no number", "write '{2,5}', or '\\{' for the character");
    return value;
  }

  /// \return the one character for which it stands; empty: it is anything else.
  std::optional<char> atom(std::size_t depth) {
    const char character = text_[at_++];
    switch (character) {
      case '(':
        group(depth);
        return std::nullopt;
      case '[':
        bytes(bracket());
        return std::nullopt;
      case '.':
        bytes(Bytes().set());
        return std::nullopt;
      case '^':
        add({Step::Kind::kBegin});
        return std::nullopt;
      case '$':
        add({Step::Kind::kEnd});
        return std::nullopt;
      case '\\':
        return escape();
      default:
        break;
    }
    if (kCounts.find(character) != std::string_view::npos) {
      refuse_pattern(std::string("nothing stands in front of '") + character + "'",
                     std::string("write '\\") + character + "' for the character");
    }
    byte(character);
    return character;
  }

  std::optional<char> escape() {
    if (ended()) refuse_pattern("the pattern ends with a backslash", "write '\\\\' for the character");
    const char letter = text_[at_++];
    if (const auto set = class_of_letter(letter)) {
      bytes(*set);
      return std::nullopt;
    }
    if (letter == 't') {
      byte('\t');
      return '\t';
    }
    if (std::isalnum(static_cast<unsigned char>(letter)) != 0) {
      refuse_pattern(std::string("'\\") + letter + "' is not known in a pattern",
                     "\\d, \\w and \\s are, and a backslash before other signs");
    }
    byte(letter);
    return letter;
  }

  void group(std::size_t depth) {
    bool is_plain = true;
    if (text_.substr(at_).starts_with("?")) {
      if (!text_.substr(at_).starts_with("?:")) refuse_pattern("'(?' is not known in a pattern", "write '(' or '(?:'");
      at_ += 2;
      is_plain = false;
    }
    const std::size_t begin = at_;
    const bool is_first = is_plain && !pattern_.has_group_;
    const bool is_value = is_first || (is_plain && begin == group_at_);  // compiled again for a count
    if (is_first) group_at_ = begin;
    pattern_.has_group_ = pattern_.has_group_ || is_plain;
    if (is_value) add({Step::Kind::kMark, 0, 0, kGroupBegin});
    choice(depth + 1);
    if (ended()) refuse_pattern("a '(' is not closed", "write '\\(' for the character");
    if (is_value) {
      add({Step::Kind::kMark, 0, 0, kGroupBegin + 1});
      pattern_.group_ = text_.substr(begin, at_ - begin);
    }
    ++at_;
  }

  /// Behind '['.
  Bytes bracket() {
    Bytes set;
    const bool is_negated = text_.substr(at_).starts_with("^");
    if (is_negated) ++at_;
    for (bool is_first = true; ended() || text_[at_] != ']' || is_first; is_first = false) {
      if (ended()) refuse_pattern("a '[' is not closed", "write '\\[' for the character");
      if (text_.substr(at_).starts_with("[:")) {
        const std::size_t end = text_.find(":]", at_ + 2);
        if (end == std::string_view::npos) refuse_pattern("a '[:' is not closed", "for example '[[:digit:]]'");
        set |= class_named(text_.substr(at_ + 2, end - at_ - 2));
        at_ = end + 2;
        continue;
      }
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) {
        if (const auto letter_set = class_of_letter(text_[at_ + 1])) {
          set |= *letter_set;
          at_ += 2;
          continue;
        }
      }
      const unsigned char first = member();
      const bool is_range = at_ + 1 < text_.size() && text_[at_] == '-' && text_[at_ + 1] != ']';
      if (is_range) ++at_;
      const unsigned char last = is_range ? member() : first;
      if (last < first) refuse_pattern("a range in brackets goes backwards", "for example '[0-9]'");
      for (unsigned value = first; value <= last; ++value) set.set(value);
    }
    ++at_;
    return is_negated ? ~set : set;
  }

  /// A backslash quotes a sign here, too.
  unsigned char member() {
    const bool is_quoted =
        text_[at_] == '\\' && at_ + 1 < text_.size() && std::ispunct(static_cast<unsigned char>(text_[at_ + 1])) != 0;
    if (is_quoted) ++at_;
    return static_cast<unsigned char>(text_[at_++]);
  }

  void byte(char character) { bytes(Bytes().set(static_cast<unsigned char>(character))); }
  void bytes(const Bytes& set) {
    add({Step::Kind::kByte, 0, 0, static_cast<std::uint16_t>(pattern_.sets_.size())});
    pattern_.sets_.push_back(set);
  }

  void end_run() {
    if (run_.size() > longest_.size()) longest_ = run_;
    run_.clear();
  }
  /// One of the whole pattern.
  void end_branch() {
    end_run();
    literals_.push_back(std::exchange(longest_, {}));
  }
  void take_literals() {
    const bool lacks_one =
        std::any_of(literals_.begin(), literals_.end(), [](const auto& text) { return text.empty(); });
    if (!lacks_one) pattern_.literals_ = std::move(literals_);
  }

  /// All steps that are reached without a byte say with what a match begins.
  [[nodiscard]] Bytes beginnings() const {
    Bytes first;
    std::vector<char> seen(pattern_.steps_.size(), 0);
    std::vector<std::uint16_t> open{0};
    while (!open.empty()) {
      const std::uint16_t at = open.back();
      open.pop_back();
      if (std::exchange(seen[at], 1) != 0) continue;
      const Step& step = pattern_.steps_[at];
      if (step.kind == Step::Kind::kByte) first |= pattern_.sets_[step.which];
      if (step.kind == Step::Kind::kMatch) return Bytes().set();
      if (step.kind == Step::Kind::kSplit) {
        open.push_back(step.first);
        open.push_back(step.second);
      } else if (step.kind != Step::Kind::kByte) {
        open.push_back(static_cast<std::uint16_t>(at + 1));
      }
    }
    return first;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  LinePattern pattern_;
  std::size_t group_at_ = 0;
  std::string run_;      ///< characters that stand side by side outside of groups
  std::string longest_;  ///< of the branch
  std::vector<std::string> literals_;
};

/// Carries a pattern out over one line.
class PatternRun {
 public:
  using Places = std::array<std::size_t, 4>;  ///< begin and end of the match and of the first group; npos: none

  PatternRun(const LinePattern& pattern, std::string_view line) : pattern_(pattern), line_(line) {
    reached_.assign(pattern.steps_.size(), 0);
  }

  /// \param whole  the match has to begin with the line and to end with it
  std::optional<Places> run(bool whole) {
    constexpr std::size_t npos = std::string_view::npos;
    std::vector<Thread> threads;
    std::vector<Thread> next;
    std::optional<Places> found;
    for (std::size_t at = 0; at <= line_.size(); ++at) {
      const bool is_end = at == line_.size();
      if (!found && (at == 0 || !whole) &&
          (pattern_.beginnings_.all() || (!is_end && pattern_.beginnings_[byte(at)]))) {
        if (threads.empty()) ++generation_;
        follow(threads, {0, {npos, npos, npos, npos}}, at);
      }
      if (threads.empty()) {
        if (found || whole) break;
        continue;
      }
      ++generation_;
      for (const Thread& thread : threads) {
        const LinePattern::Step& step = pattern_.steps_[thread.step];
        if (step.kind == LinePattern::Step::Kind::kMatch) {
          if (whole && !is_end) continue;
          found = thread.places;
          break;  // what comes behind is a later choice
        }
        if (is_end || !pattern_.sets_[step.which][byte(at)]) continue;
        follow(next, {static_cast<std::uint16_t>(thread.step + 1), thread.places}, at + 1);
      }
      threads.swap(next);
      next.clear();
    }
    return found;
  }

 private:
  struct Thread {
    std::uint16_t step;
    Places places;
  };

  [[nodiscard]] unsigned char byte(std::size_t at) const { return static_cast<unsigned char>(line_[at]); }

  /// Adds the steps that wait for a byte, or match, and are reached from `first` without one; each once a place.
  void follow(std::vector<Thread>& threads, const Thread& first, std::size_t at) {
    open_.assign(1, first);
    while (!open_.empty()) {
      Thread thread = open_.back();
      open_.pop_back();
      if (std::exchange(reached_[thread.step], generation_) == generation_) continue;
      const LinePattern::Step& step = pattern_.steps_[thread.step];
      const auto go_on = [&](std::uint16_t to) { open_.push_back({to, thread.places}); };
      const auto following = static_cast<std::uint16_t>(thread.step + 1);
      switch (step.kind) {
        case LinePattern::Step::Kind::kByte:
        case LinePattern::Step::Kind::kMatch:
          threads.push_back(thread);
          break;
        case LinePattern::Step::Kind::kSplit:
          go_on(step.second);  // the last one is taken first
          go_on(step.first);
          break;
        case LinePattern::Step::Kind::kMark:
          thread.places[step.which] = at;
          go_on(following);
          break;
        case LinePattern::Step::Kind::kBegin:
          if (at == 0) go_on(following);
          break;
        case LinePattern::Step::Kind::kEnd:
          if (at == line_.size()) go_on(following);
          break;
      }
    }
  }

  const LinePattern& pattern_;
  std::string_view line_;
  std::vector<std::size_t> reached_;  ///< of each step the generation that reached it last
  std::size_t generation_ = 0;
  std::vector<Thread> open_;
};

std::variant<LinePattern, LinePattern::Problem> LinePattern::make(std::string_view text) {
  if (text.empty()) return Problem{"the pattern is empty", "for example 'loss=([^ ]+)'"};
  if (text.size() > kMostBytes) return Problem{"the pattern is longer than 500 bytes", "search for less of the line"};
  const bool has_control =
      std::any_of(text.begin(), text.end(), [](char one) { return one >= 0 && one < ' ' && one != '\t'; });
  if (has_control) return Problem{"the pattern has a control character", "lines have none: leave it out"};
  try {
    return PatternCompiler(text).compile();
  } catch (PatternError& error) {
    return std::move(error.problem);
  }
}

std::optional<std::string_view> LinePattern::find(std::string_view line) const {
  const std::optional<PatternRun::Places> places = PatternRun(*this, line).run(false);
  if (!places) return std::nullopt;
  const bool has_value =
      (*places)[kGroupBegin] != std::string_view::npos && (*places)[kGroupBegin + 1] != std::string_view::npos;
  const std::size_t from = has_value ? kGroupBegin : 0;
  return line.substr((*places)[from], (*places)[from + 1] - (*places)[from]);
}

bool LinePattern::group_may_be(std::string_view value) const {
  const auto made = make(group_);
  const auto* const pattern = std::get_if<LinePattern>(&made);
  return pattern == nullptr || PatternRun(*pattern, value).run(true).has_value();
}

}  // namespace lrun::launcher
