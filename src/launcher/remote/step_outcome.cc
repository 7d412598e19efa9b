#include "remote/step_outcome.h"

#include <algorithm>
#include <utility>

#include "base/whole_number.h"

namespace lrun::launcher {
namespace {

constexpr std::size_t kMostBytesOfNumbers = 15;  // of an int, a space, and a code
constexpr int kMostCode = 255;
constexpr std::string_view kBegun = "begun";

struct Outcome {
  int round = 0;
  int code = 0;
};

std::optional<Outcome> outcome_in(std::string_view numbers) {
  const std::size_t space = numbers.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const auto round = whole_number<int>(numbers.substr(0, space));
  const auto code = whole_number<int>(numbers.substr(space + 1));
  if (!round || *round < 0 || !code || *code < 0 || *code > kMostCode) return std::nullopt;
  return Outcome{*round, *code};
}

std::string mark_of(const std::string& token) { return "\x1e" + token + " "; }

/// How many of the last bytes may be the beginning of `mark`.
std::size_t begun_at_end(std::string_view bytes, std::string_view mark) {
  for (std::size_t length = std::min(bytes.size(), mark.size() - 1); length > 0; --length) {
    if (mark.starts_with(bytes.substr(bytes.size() - length))) return length;
  }
  return 0;
}

}  // namespace

std::string outcome_line(const std::string& token, int round, int code) {
  return mark_of(token) + std::to_string(round) + " " + std::to_string(code) + "\n";
}

std::string begun_line(const std::string& token) { return mark_of(token) + std::string(kBegun) + "\n"; }

OutcomeReader::OutcomeReader(const std::string& token) : mark_(mark_of(token)) {}

std::string OutcomeReader::pass_on(std::string_view bytes) {
  held_ += bytes;
  std::string passed;
  std::size_t at = 0;
  while ((at = held_.find(mark_)) != std::string::npos) {
    passed.append(held_, 0, at);
    held_.erase(0, at);
    const std::size_t end = held_.find('\n', mark_.size());
    if (end == std::string::npos && held_.size() <= mark_.size() + kMostBytesOfNumbers)
      return passed;  // more is to come
    const std::string_view words = std::string_view(held_).substr(mark_.size(), end - mark_.size());
    const auto outcome = outcome_in(words);
    const bool is_line = end != std::string::npos && (outcome || words == kBegun);
    begun_ = begun_ || (is_line && !outcome);
    if (is_line && outcome && (!code_ || outcome->round >= round_)) {
      code_ = outcome->code;
      round_ = outcome->round;
    }
    if (!is_line) passed.append(held_, 0, mark_.size());
    held_.erase(0, is_line ? end + 1 : mark_.size());
  }
  const std::size_t begun = begun_at_end(held_, mark_);
  passed.append(held_, 0, held_.size() - begun);
  held_.erase(0, held_.size() - begun);
  return passed;
}

std::string OutcomeReader::rest() { return std::exchange(held_, {}); }

}  // namespace lrun::launcher
