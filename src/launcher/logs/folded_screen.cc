#include "logs/folded_screen.h"

#include <algorithm>
#include <string_view>

namespace lrun::launcher {
namespace {

/// Whether the text surely takes one row: a character beyond ASCII may be two columns wide, and of control characters
/// only the terminal knows.
bool takes_one_row(std::string_view text, int columns) {
  int width = 0;
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (byte < 0x20 || byte == 0x7F) return false;
    width += byte < 0x80 ? 1 : byte >= 0xC0 ? 2 : 0;
  }
  return width < columns;
}

}  // namespace

void FoldedScreen::wrote(std::uint64_t id, const std::string& shown, Size size) {
  const bool one_row = takes_one_row(shown, size.columns);
  if (size != size_ || !one_row) rows_.clear();
  size_ = size;
  if (!one_row) return;
  rows_.push_back(id);
  if (rows_.size() > kMostRows) rows_.pop_front();
}

std::string FoldedScreen::redraw(const std::vector<Line>& lines, Size size) const {
  if (lines.empty() || size != size_) return {};
  std::size_t highest = 0;
  for (const Line& line : lines) {
    const auto row = std::find(rows_.rbegin(), rows_.rend(), line.id);
    if (row == rows_.rend() || !takes_one_row(line.shown, size.columns)) return {};
    highest = std::max(highest, static_cast<std::size_t>(row - rows_.rbegin()) + 1);
  }
  if (highest >= static_cast<std::size_t>(size.rows)) return {};  // it is out of sight
  std::string sequences = "\r\x1b[" + std::to_string(highest) + "A";
  for (std::size_t row = rows_.size() - highest; row < rows_.size(); ++row) {
    const auto line =
        std::find_if(lines.begin(), lines.end(), [&](const Line& candidate) { return candidate.id == rows_[row]; });
    if (line != lines.end()) sequences += "\x1b[2K" + line->output + "\r";
    sequences += "\x1b[1B";
  }
  return sequences;
}

}  // namespace lrun::launcher
