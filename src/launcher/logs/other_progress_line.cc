#include "logs/other_progress_line.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace lrun::launcher {
namespace {

constexpr int kTab = 8;

bool is_continuation(char letter) { return (static_cast<unsigned char>(letter) & 0xC0U) == 0x80; }

constexpr std::string_view kParameters = "0123456789;?";

/// `text` begins with ESC, and the next piece decides which sequence it is.
bool is_cut_off(std::string_view text) {
  constexpr std::size_t kLongest = 32;
  if (text.front() != '\x1b' || text.size() > kLongest) return false;
  return text.size() == 1 || (text[1] == '[' && text.find_first_not_of(kParameters, 2) == std::string_view::npos);
}

/// The length of the control sequence (ESC '[' ... letter) that `text` begins with; 0: it is another one.
std::size_t escape_sequence_length(std::string_view text) {
  if (text.size() < 3 || text[1] != '[') return 0;
  const std::size_t last = text.find_first_not_of(kParameters, 2);
  return last == std::string_view::npos ? 0 : last + 1;
}

/// 'ESC [ 12 C' → 12; 1 when it has no number.
int number_in(std::string_view sequence) {
  int number = 1;
  std::from_chars(sequence.data() + 2, sequence.data() + sequence.size(), number);
  return number;
}

}  // namespace

void OtherProgressLine::move(int columns) {
  constexpr int kFarther = 10'000;  // than any terminal is wide
  column_ = std::clamp(column_ + std::clamp(columns, -kFarther, kFarther), 0, kFarther);
}

/// One character or sequence of the line. \return its length.
std::size_t OtherProgressLine::take_one(std::string_view rest) {
  const char letter = rest.front();
  if (letter == '\x1b') {
    const std::size_t length = escape_sequence_length(rest);
    const char what = length == 0 ? '\0' : rest[length - 1];
    if (what == 'C') move(number_in(rest));
    if (what == 'D') move(-number_in(rest));
    if (what == 'G') move(number_in(rest) - 1 - column_);
    // Others of these erase, insert, colour and switch modes; what is not among them may go to another row, or ask.
    if (std::string_view("CDGKPX@mhl").find(what) == std::string_view::npos || what == '\0') can_be_drawn_ = false;
    return std::max<std::size_t>(length, 1);
  }
  if (letter == '\r') column_ = 0;
  if (letter == '\b') move(-1);
  if (letter == '\t') move(kTab - column_ % kTab);
  const auto byte = static_cast<unsigned char>(letter);
  if (byte >= 0x20 && byte != 0x7F && !is_continuation(letter)) {
    move(1);
    furthest_ = std::max(furthest_, column_);
  }
  return 1;
}

void OtherProgressLine::take(std::string_view bytes, int columns) {
  if (const std::size_t end = bytes.rfind('\n'); end != std::string_view::npos) {
    forget();
    bytes.remove_prefix(end + 1);
  }
  const std::string text = std::exchange(cut_, {}).append(bytes);
  for (std::string_view rest = text; !rest.empty();) {
    if (is_cut_off(rest)) {
      cut_ = rest;
      break;
    }
    const std::size_t length = take_one(rest);
    if (rest.front() != '\a') bytes_.append(rest.substr(0, length));
    rest.remove_prefix(length);
  }
  if (furthest_ >= columns || bytes_.size() > kMostBytes) can_be_drawn_ = false;
  if (!can_be_drawn_) leave();
}

}  // namespace lrun::launcher
