// In: the rules of --watch, and what workers print. Out: the ranks for which a rule holds. WatchMonitor owns one.
#include "logs/line_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/shortened.h"
#include "base/split.h"
#include "logs/terminal_text.h"

namespace lrun::launcher {
namespace {

constexpr std::string_view kLineEnds = "\n\r";
constexpr std::size_t kMostLineColumns = 100;
constexpr std::size_t kMostPatternColumns = 60;
constexpr std::size_t kNumbersOfMedian = 101;
constexpr std::size_t kLeastNumbers = 10;  ///< for a median

/// The number at the front of `text`; empty: there is none.
std::optional<double> number_of(std::string_view text) {
  const std::string copy(text.substr(0, 64));
  char* end = nullptr;
  const double number = std::strtod(copy.c_str(), &end);
  return end == copy.c_str() ? std::nullopt : std::optional(number);
}

bool is_nan(double number) { return number != number; }  // NOLINT(misc-redundant-expression)
bool is_finite(double number) { return number - number == 0; }

double median_of(const std::deque<double>& numbers) {
  std::vector<double> sorted(numbers.begin(), numbers.end());
  const auto middle = sorted.begin() + std::ssize(sorted) / 2;
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

/// Words for a number for which the test holds: 'nan', '7.5, above 5'. Empty: it does not hold.
std::string holds_as(const WatchTest& test, double number, const std::deque<double>& before) {
  switch (test.kind) {
    case WatchTest::Kind::kNan:
      return is_nan(number) ? "nan" : "";
    case WatchTest::Kind::kInf:
      return is_nan(number) || is_finite(number) ? "" : fmt::format("{}inf", number < 0 ? "-" : "");
    case WatchTest::Kind::kAbove:
      return number > test.limit ? fmt::format("{:.6g}, above {:.6g}", number, test.limit) : "";
    case WatchTest::Kind::kBelow:
      return number < test.limit ? fmt::format("{:.6g}, below {:.6g}", number, test.limit) : "";
    case WatchTest::Kind::kJump: {
      if (before.size() < kLeastNumbers) return {};
      const double median = median_of(before);
      if (median <= 0 || !(number > test.limit * median)) return {};
      return fmt::format("{:.6g}, {:.1f} times its median of {:.6g}", number, number / median, median);
    }
    case WatchTest::Kind::kSeen:
    case WatchTest::Kind::kSilent:
      break;
  }
  return {};
}

/// Finds the first of several texts again and again; each text searches each byte once.
class TextSearch {
 public:
  TextSearch(std::string_view bytes, const std::vector<std::string>& texts)
      : bytes_(bytes), texts_(texts), places_(texts.size(), 0), searched_(texts.size(), false) {}

  /// The first place at or behind `from` where one of them begins; npos: there is none.
  std::size_t next(std::size_t from) {
    std::size_t first = std::string_view::npos;
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      if (!searched_[i] || places_[i] < from) places_[i] = find(texts_[i], from);
      searched_[i] = true;
      first = std::min(first, places_[i]);
    }
    return first;
  }

 private:
  [[nodiscard]] std::size_t find(const std::string& text, std::size_t from) const {
    const void* const at = ::memmem(bytes_.data() + from, bytes_.size() - from, text.data(), text.size());
    return at == nullptr ? std::string_view::npos
                         : static_cast<std::size_t>(static_cast<const char*>(at) - bytes_.data());
  }

  std::string_view bytes_;
  const std::vector<std::string>& texts_;
  std::vector<std::size_t> places_;
  std::vector<bool> searched_;
};

bool asks_for(const WatchRule& rule, WatchTest::Kind kind) {
  return std::any_of(rule.tests.begin(), rule.tests.end(), [kind](const WatchTest& test) { return test.kind == kind; });
}

/// The shortest silence that the rule asks for; zero: none.
Duration silence_of(const WatchRule& rule) {
  Duration shortest{0};
  for (const WatchTest& test : rule.tests) {
    const bool counts = test.kind == WatchTest::Kind::kSilent && (shortest == Duration{0} || test.time < shortest);
    if (counts) shortest = test.time;
  }
  return shortest;
}

std::string quoted_line(std::string_view line) {
  return "'" + shortened(terminal_safe(trimmed(line)), kMostLineColumns) + "'";
}

std::vector<LinePattern> pattern_of(const WatchRule& rule) {
  auto made = LinePattern::make(rule.pattern);
  return {std::get<LinePattern>(std::move(made))};
}

}  // namespace

LineWatch::LineWatch(const std::vector<WatchRule>& rules) {
  for (const WatchRule& rule : rules) rules_.push_back({rule, pattern_of(rule).front(), {}});
}

std::vector<WatchFinding> LineWatch::read(int rank, LogStream stream, std::string_view bytes, SteadyTime now) {
  std::vector<WatchFinding> found;
  std::string& unfinished = unfinished_[{rank, stream}];
  const auto search_all = [&](std::string_view lines) {
    for (Rule& rule : rules_) {
      const bool counts = rule.rule.ranks.empty() || has_rank(rule.rule.ranks, rank);
      if (counts && !lines.empty()) search(rule, rank, lines, now, found);
    }
  };
  if (!unfinished.empty()) {
    const std::size_t end = bytes.find_first_of(kLineEnds);
    unfinished += bytes.substr(0, std::min(end, kLongestLine - unfinished.size()));
    if (end == std::string_view::npos) return found;
    search_all(unfinished);
    bytes.remove_prefix(end + 1);
  }
  const std::size_t last_end = bytes.find_last_of(kLineEnds);
  const std::size_t whole = last_end == std::string_view::npos ? 0 : last_end + 1;
  search_all(bytes.substr(0, whole));
  unfinished = bytes.substr(whole, kLongestLine);
  return found;
}

/// Most lines have no match: where matches have known texts, libc's search for these is quicker by far.
void LineWatch::search(Rule& rule, int rank, std::string_view lines, SteadyTime now, std::vector<WatchFinding>& found) {
  TextSearch texts(lines, rule.pattern.literals());
  for (std::size_t at = 0; at < lines.size();) {
    if (!rule.pattern.literals().empty()) {
      const std::size_t place = texts.next(at);
      if (place == std::string_view::npos) return;
      at += lines.substr(at, place - at).find_last_of(kLineEnds) + 1;  // npos + 1 is 0
    }
    const std::size_t end = std::min(lines.find_first_of(kLineEnds, at), lines.size());
    check(rule, rank, lines.substr(at, std::min(end - at, kLongestLine)), now, found);
    at = end + 1;
  }
}

void LineWatch::check(Rule& rule, int rank, std::string_view line, SteadyTime now, std::vector<WatchFinding>& found) {
  const bool has_colours = line.find('\x1b') != std::string_view::npos;
  const std::string plain = has_colours ? terminal_safe(line) : std::string();
  const std::optional<std::string_view> value = rule.pattern.find(has_colours ? plain : line);
  if (!value) return;
  History& history = rule.ranks[rank];
  history.last_match = now;
  history.is_silent = false;
  std::string as = asks_for(rule.rule, WatchTest::Kind::kSeen) ? quoted_line(line) : "";
  if (const std::optional<double> number = number_of(*value); number && as.empty()) {
    for (const WatchTest& test : rule.rule.tests) {
      const std::string text = holds_as(test, *number, history.last_numbers);
      if (!text.empty() && as.empty()) as = text + ": " + quoted_line(line);
    }
    if (is_finite(*number)) history.last_numbers.push_back(*number);
    if (history.last_numbers.size() > kNumbersOfMedian) history.last_numbers.pop_front();
  }
  if (as.empty()) {
    history.holds = false;
  } else if (!std::exchange(history.holds, true)) {
    found.push_back(
        {static_cast<std::size_t>(&rule - rules_.data()), rank, fmt::format("rank {} printed {}", rank, as)});
  }
}

std::vector<WatchFinding> LineWatch::silent(SteadyTime now) {
  std::vector<WatchFinding> found;
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    const Duration limit = silence_of(rules_[i].rule);
    if (limit == Duration{0}) continue;
    for (auto& [rank, history] : rules_[i].ranks) {
      if (history.is_silent || now < history.last_match + limit) continue;
      history.is_silent = true;
      const std::string pattern = shortened(terminal_safe(rules_[i].rule.pattern), kMostPatternColumns);
      found.push_back(
          {i, rank, fmt::format("rank {} printed nothing like '{}' for {}", rank, pattern, format_duration(limit))});
    }
  }
  return found;
}

std::optional<SteadyTime> LineWatch::next_silence() const {
  std::optional<SteadyTime> next;
  for (const Rule& rule : rules_) {
    const Duration limit = silence_of(rule.rule);
    if (limit == Duration{0}) continue;
    for (const auto& [rank, history] : rule.ranks) {
      if (!history.is_silent) next = std::min(next.value_or(history.last_match + limit), history.last_match + limit);
    }
  }
  return next;
}

std::vector<std::size_t> LineWatch::unmatched() const {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    if (rules_[i].ranks.empty() && !asks_for(rules_[i].rule, WatchTest::Kind::kSeen)) places.push_back(i);
  }
  return places;
}

void LineWatch::wait_anew(SteadyTime now) {
  for (Rule& rule : rules_) {
    for (auto& [rank, history] : rule.ranks) history.last_match = now;
  }
}

}  // namespace lrun::launcher
