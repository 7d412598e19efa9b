#include "logs/line_folder.h"

#include <algorithm>
#include <utility>

namespace lrun::launcher {
namespace {

void insert(std::vector<int>& ranks, int rank) {
  ranks.insert(std::lower_bound(ranks.begin(), ranks.end(), rank), rank);
}

}  // namespace

void LineFolder::take(int rank, std::string_view line) {
  const auto known = by_text_.find(line);
  if (known != by_text_.end()) {
    // A rank's copies are in the first ones.
    const auto candidate = std::partition_point(
        known->second.begin(), known->second.end(),
        [rank](const auto& earlier) { return std::binary_search(earlier->seen.begin(), earlier->seen.end(), rank); });
    if (candidate != known->second.end()) {
      insert((*candidate)->seen, rank);
      insert((*candidate)->held, rank);
      return;
    }
  }
  lines_.push_back({std::string(line), next_id_++, {rank}, {rank}, std::nullopt});
  const auto added = std::prev(lines_.end());
  bytes_ += added->text.size();
  if (known != by_text_.end()) {
    known->second.push_back(added);
  } else {
    by_text_[added->text].push_back(added);
  }
}

void LineFolder::show_new(SteadyTime now, std::vector<Output>& to) {
  auto line = lines_.end();
  while (line != lines_.begin() && !std::prev(line)->window_end) --line;
  for (; line != lines_.end(); ++line) {
    if (!waits_) to.push_back({std::exchange(line->held, {}), line->seen, line->text, false, line->id});
    line->window_end = now + window_;
  }
}

void LineFolder::forget_oldest(std::vector<Output>& to) {
  Line& oldest = lines_.front();
  const bool was_shown = oldest.window_end && !waits_;
  if (!oldest.held.empty()) to.push_back({std::move(oldest.held), oldest.seen, oldest.text, was_shown, oldest.id});
  const auto entry = by_text_.find(oldest.text);
  std::deque<Lines::iterator> rest = std::move(entry->second);
  by_text_.erase(entry);  // its key goes with the line
  rest.pop_front();
  if (!rest.empty()) {
    const std::string_view key = rest.front()->text;
    by_text_[key] = std::move(rest);
  }
  bytes_ -= oldest.text.size();
  lines_.pop_front();
}

std::vector<LineFolder::Output> LineFolder::show(SteadyTime now) {
  std::vector<Output> outputs;
  while (!lines_.empty() && lines_.front().window_end && *lines_.front().window_end <= now) forget_oldest(outputs);
  show_new(now, outputs);
  while (lines_.size() > kMostLines || bytes_ > kMostBytes) forget_oldest(outputs);
  return outputs;
}

std::vector<LineFolder::Output> LineFolder::show_all() {
  std::vector<Output> outputs;
  while (!lines_.empty()) forget_oldest(outputs);
  return outputs;
}

std::optional<SteadyTime> LineFolder::next() const {
  for (const Line& line : lines_) {
    if (!line.held.empty()) return line.window_end;
  }
  return std::nullopt;
}

std::string rank_ranges(const std::vector<int>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(ranks[i]);
    if (last > i) text += (last == i + 1 ? "," : "-") + std::to_string(ranks[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace lrun::launcher
