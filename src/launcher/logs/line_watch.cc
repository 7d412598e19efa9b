// In: the rules of --watch, and what workers print. Out: the ranks for which a rule holds. WatchMonitor owns one.
#include "logs/line_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>

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
constexpr char kEscape = '\x1b';
constexpr Duration kTellsAgain = std::chrono::minutes(1);

/// The number that a value shows: '2.5', 'nan', also in quotes or as torch prints a tensor. Empty: it shows none.
std::optional<double> number_of(std::string_view value) {
  constexpr std::string_view kTensor = "tensor(";
  if (value.starts_with(kTensor)) value.remove_prefix(kTensor.size());
  value.remove_prefix(std::min(value.find_first_not_of("\"'[("), value.size()));
  const std::string copy(value.substr(0, 64));
  char* end = nullptr;
  const double number = std::strtod(copy.c_str(), &end);
  if (end == copy.c_str()) return std::nullopt;
  const auto is_digit = [](char character) { return std::isdigit(static_cast<unsigned char>(character)) != 0; };
  const bool goes_on = std::isalnum(static_cast<unsigned char>(*end)) != 0 && !is_digit(end[-1]);  // 'info'
  const bool is_grouped = *end == ',' && is_digit(end[1]);                                         // '1,234'
  return goes_on || is_grouped ? std::nullopt : std::optional(number);
}

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
      return std::isnan(number) ? "nan" : "";
    case WatchTest::Kind::kInf:
      return std::isinf(number) ? fmt::format("{}inf", number < 0 ? "-" : "") : "";
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
  TextSearch(std::string_view bytes, const std::vector<std::string>& texts) : bytes_(bytes), texts_(texts) {
    for (const std::string& text : texts) places_.push_back(find(text, 0));
  }

  /// The first place at or behind `from` where one of them begins; npos: there is none.
  std::size_t next(std::size_t from) {
    std::size_t first = std::string_view::npos;
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      if (places_[i] < from) places_[i] = find(texts_[i], from);
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

/// The line, or of a long one the part where its value begins.
std::string quoted_line(std::string_view line, std::string_view value) {
  constexpr std::size_t kBefore = 40;
  const auto at = static_cast<std::size_t>(value.data() - line.data());
  const bool is_far = at + value.size() > kMostLineColumns;
  const std::string part = terminal_safe(trimmed(is_far ? line.substr(std::max(at, kBefore) - kBefore) : line));
  return fmt::format("'{}{}'", is_far ? "…" : "", shortened(part, kMostLineColumns));
}

LinePattern pattern_of(const WatchRule& rule) { return std::get<LinePattern>(LinePattern::make(rule.pattern)); }

}  // namespace

LineWatch::LineWatch(const std::vector<WatchRule>& rules) {
  for (const WatchRule& rule : rules) rules_.push_back({rule, pattern_of(rule)});
}

std::vector<WatchFinding> LineWatch::read(int rank, LogStream stream, std::string_view bytes, SteadyTime now) {
  std::vector<WatchFinding> found;
  Unfinished& unfinished = unfinished_[{rank, stream}];
  if (!unfinished.text.empty()) {
    const std::size_t end = std::min(bytes.find_first_of(kLineEnds), bytes.size());
    if (end > 0) unfinished.is_read = false;
    unfinished.text += bytes.substr(0, std::min(end, kLongestLine - unfinished.text.size()));
    if (end == bytes.size()) return found;
    if (!unfinished.is_read) search_all({rank, unfinished.text, now}, found);
    bytes.remove_prefix(end + 1);
  }
  const std::size_t last_end = bytes.find_last_of(kLineEnds);
  const std::size_t whole = last_end == std::string_view::npos ? 0 : last_end + 1;
  search_all({rank, bytes.substr(0, whole), now}, found);
  unfinished = {std::string(bytes.substr(whole, kLongestLine))};
  return found;
}

bool LineWatch::has_unfinished() const {
  return std::any_of(unfinished_.begin(), unfinished_.end(),
                     [](const auto& entry) { return !entry.second.text.empty() && !entry.second.is_read; });
}

std::vector<WatchFinding> LineWatch::read_unfinished(SteadyTime now) {
  std::vector<WatchFinding> found;
  for (auto& [of, unfinished] : unfinished_) {
    if (unfinished.text.empty() || std::exchange(unfinished.is_read, true)) continue;
    search_all({of.first, unfinished.text, now}, found);
  }
  return found;
}

void LineWatch::search_all(const Lines& lines, std::vector<WatchFinding>& found) {
  for (Rule& rule : rules_) {
    const bool is_meant = rule.rule.ranks.empty() || has_rank(rule.rule.ranks, lines.rank);
    if (is_meant) search(rule, lines, found);
  }
}

/// Most lines have no match: where matches have known texts, libc's search for these is quicker by far. Colours may
/// stand within a text.
void LineWatch::search(Rule& rule, const Lines& lines, std::vector<WatchFinding>& found) {
  const std::string_view bytes = lines.bytes;
  const bool has_colours = bytes.find(kEscape) != std::string_view::npos;
  const bool has_texts = !rule.pattern.literals().empty() && !has_colours;
  TextSearch texts(has_texts ? bytes : bytes.substr(0, 0), rule.pattern.literals());
  for (std::size_t at = 0; at < bytes.size();) {
    if (has_texts) {
      const std::size_t place = texts.next(at);
      if (place == std::string_view::npos) return;
      at += bytes.substr(at, place - at).find_last_of(kLineEnds) + 1;  // npos + 1 is 0
    }
    const std::size_t end = std::min(bytes.find_first_of(kLineEnds, at), bytes.size());
    check(rule, {lines.rank, bytes.substr(at, std::min(end - at, kLongestLine)), lines.now}, found);
    at = end + 1;
  }
}

void LineWatch::check(Rule& rule, const Lines& read, std::vector<WatchFinding>& found) {
  const bool has_colours = read.bytes.find(kEscape) != std::string_view::npos;
  const std::string plain = has_colours ? terminal_safe(read.bytes) : std::string();
  const std::string_view line = has_colours ? plain : read.bytes;
  const std::optional<std::string_view> value = rule.pattern.find(line);
  if (!value) return;
  History& history = rule.ranks[read.rank];
  history.last_match = read.now;
  history.is_silent = false;
  const std::string as = judge(rule, history, line, *value);
  const bool held = std::exchange(history.holds, !as.empty());
  const bool is_new = !history.told || read.now - *history.told >= kTellsAgain;
  if (as.empty() || held || !is_new) return;
  history.told = read.now;
  const auto place = static_cast<std::size_t>(&rule - rules_.data());
  found.push_back({place, read.rank, fmt::format("rank {} printed {}", read.rank, as)});
}

std::string LineWatch::judge(Rule& rule, History& history, std::string_view line, std::string_view value) {
  if (asks_for(rule.rule, WatchTest::Kind::kSeen)) return quoted_line(line, value);
  const std::size_t value_end = static_cast<std::size_t>(value.data() - line.data()) + value.size();
  const bool is_cut = line.size() == kLongestLine && value_end == line.size();
  const std::optional<double> number = is_cut ? std::nullopt : number_of(value);
  rule.has_number = rule.has_number || number;
  if (!number) {
    if (rule.no_number.empty()) rule.no_number = terminal_safe(value);
    return {};
  }
  std::string as;
  for (const WatchTest& test : rule.rule.tests) {
    const std::string text = holds_as(test, *number, history.last_numbers);
    if (!text.empty() && as.empty()) as = text + ": " + quoted_line(line, value);
  }
  if (std::isfinite(*number)) history.last_numbers.push_back(*number);
  if (history.last_numbers.size() > kNumbersOfMedian) history.last_numbers.pop_front();
  return as;
}

std::vector<WatchFinding> LineWatch::silent(SteadyTime now, const std::vector<int>& running) {
  std::vector<WatchFinding> found;
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    const Duration limit = silence_of(rules_[i].rule);
    if (limit == Duration{0}) continue;
    for (auto& [rank, history] : rules_[i].ranks) {
      if (history.is_silent || now < history.last_match + limit) continue;
      history.is_silent = true;
      if (std::find(running.begin(), running.end(), rank) == running.end()) continue;
      const std::string pattern = shortened(terminal_safe(rules_[i].rule.pattern), kMostPatternColumns);
      found.push_back({i, rank,
                       fmt::format("rank {} printed nothing like '{}' for {}", rank, pattern, format_duration(limit)),
                       limit});
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

std::vector<std::pair<std::size_t, std::string>> LineWatch::idle() const {
  std::vector<std::pair<std::size_t, std::string>> idle;
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    const Rule& rule = rules_[i];
    if (asks_for(rule.rule, WatchTest::Kind::kSeen)) continue;
    const bool had_numbers = rule.has_number || silence_of(rule.rule) > Duration{0};
    if (rule.ranks.empty()) {
      idle.emplace_back(i, "no line matched");
    } else if (!had_numbers) {
      idle.emplace_back(i, fmt::format("the first group was '{}' and never a number, by",
                                       shortened(rule.no_number, kMostPatternColumns)));
    }
  }
  return idle;
}

void LineWatch::wait_anew(SteadyTime now) {
  for (Rule& rule : rules_) {
    for (auto& [rank, history] : rule.ranks) history.last_match = now;
  }
}

}  // namespace lrun::launcher
