#include "multihost/message_dedup.h"

#include <algorithm>
#include <utility>

namespace lrun::launcher {
namespace {

constexpr std::size_t kMostKept = std::size_t{64} * 1024;

}  // namespace

/// The oldest texts are dropped: the verdict is among the last ones.
void MessageDedup::Texts::keep(const std::string& text) {
  texts_.push_back(text);
  bytes_ += text.size();
  while (bytes_ > kMostKept && texts_.size() > 1) drop_oldest();
}

bool MessageDedup::Texts::drop_through(const std::string& text) {
  const auto place = std::find(texts_.begin(), texts_.end(), text);
  if (place == texts_.end()) return false;
  for (auto left = place - texts_.begin() + 1; left > 0; --left) drop_oldest();
  return true;
}

void MessageDedup::Texts::drop_oldest() {
  bytes_ -= texts_.front().size();
  texts_.pop_front();
}

std::string MessageDedup::of_job(std::size_t host, const std::string& text) {
  Host& own = hosts_[host];
  if (own.ahead.drop_through(text)) {
    own.untold = {};
    return {};
  }
  if (host == voice_) return tell(text);
  own.untold.keep(text);
  return {};
}

std::string MessageDedup::lost(std::size_t host) {
  hosts_[host].lost = true;
  std::string shown;
  while (voice_ < hosts_.size() && hosts_[voice_].lost) {
    if (++voice_ == hosts_.size()) break;
    const Texts untold = std::exchange(hosts_[voice_].untold, {});
    for (const std::string& text : untold.all()) shown += tell(text);
  }
  return shown;
}

/// The launchers of other hosts have sent the same text, or will.
std::string MessageDedup::tell(const std::string& text) {
  for (std::size_t other = 0; other < hosts_.size(); ++other) {
    if (other != voice_ && !hosts_[other].untold.drop_through(text)) hosts_[other].ahead.keep(text);
  }
  return text;
}

}  // namespace lrun::launcher
