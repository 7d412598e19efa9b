#include "report/watched_screen.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/split.h"
#include "logs/terminal_text.h"
#include "report/status_text.h"

namespace lrun::launcher {
namespace {

using Block = std::vector<std::string>;

Block block_of(const RunStatus& run, std::int64_t now_ms, RankFold fold) {
  return split_lines(status_text(run, now_ms, fold));
}

void cut_off(Block& block, std::size_t most) {
  if (block.size() <= most) return;
  const std::size_t kept = std::max<std::size_t>(1, most) - 1;
  const std::string rest = fmt::format("  and {} more", block.size() - kept);
  block.resize(kept);
  block.push_back(rest);
}

/// The blocks one below the other, an empty line between them.
Block stacked(const std::vector<Block>& blocks) {
  Block all;
  for (const Block& block : blocks) {
    if (!all.empty()) all.emplace_back();
    all.insert(all.end(), block.begin(), block.end());
  }
  return all;
}

std::vector<Block> blocks_of(const std::vector<RunStatus>& runs, std::int64_t now_ms, RankFold fold) {
  std::vector<Block> blocks;
  for (const RunStatus& run : runs) blocks.push_back(block_of(run, now_ms, fold));
  return blocks;
}

}  // namespace

std::vector<std::string> watched_lines(const std::vector<RunStatus>& runs, const std::vector<std::string>& remarks,
                                       std::int64_t now_ms, ConsoleDescriptor::Size size) {
  const auto rows = static_cast<std::size_t>(std::max(2, size.rows)) - 1;
  const std::size_t room = rows - std::min(rows, remarks.size());
  Block lines = stacked(blocks_of(runs, now_ms, RankFold::kNone));
  if (lines.size() > room) {
    std::vector<Block> blocks = blocks_of(runs, now_ms, RankFold::kState);
    lines = stacked(blocks);
    if (lines.size() > room) {
      constexpr std::size_t kFewest = 3;  // the run, the names of the columns, and 'and 40 more'
      const std::size_t between = runs.size() - 1;
      for (Block& block : blocks) cut_off(block, std::max(kFewest, (room - std::min(room, between)) / runs.size()));
      lines = stacked(blocks);
    }
  }
  lines.insert(lines.end(), remarks.begin(), remarks.end());
  cut_off(lines, rows);
  for (std::string& line : lines) line = fitted(line, size.columns);
  return lines;
}

std::string WatchedScreen::draw(const std::string& above, const std::vector<std::string>& lines,
                                ConsoleDescriptor::Size size) {
  // A terminal that changed its width has wrapped the lines anew: nobody knows where they stand.
  std::string bytes;
  if (drawn_ > 0) bytes = size == size_ ? fmt::format("\r\x1b[{}A", drawn_) : "\x1b[H\x1b[2J";
  if (!above.empty()) bytes += "\x1b[J" + above;
  bytes += "\x1b[?7l";  // a character may be wider than lrun knows: it is not to wrap the line
  for (const std::string& line : lines) bytes += line + "\x1b[K\n";
  bytes += "\x1b[?7h\x1b[J";
  drawn_ = lines.size();
  size_ = size;
  return bytes;
}

}  // namespace lrun::launcher
