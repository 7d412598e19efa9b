#include "store/refusal_log.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace lrun::launcher {
namespace {

constexpr std::size_t kMostReasons = 8;
constexpr std::chrono::minutes kBetweenLines(1);

std::string more_connections(std::uint64_t count) {
  return std::to_string(count) + (count == 1 ? " more connection" : " more connections");
}

}  // namespace

std::optional<std::string> RefusalLog::refused(std::string_view peer, const std::string& reason, SteadyTime now) {
  const bool known = std::find(reasons_.begin(), reasons_.end(), reason) != reasons_.end();
  const bool is_new = !known && reasons_.size() < kMostReasons;
  if (!is_new && now - last_ < kBetweenLines) {
    ++counted_;
    return std::nullopt;
  }
  if (is_new) reasons_.push_back(reason);
  last_ = now;
  std::string line = what_ + " " + std::string(peer) + ": " + reason;
  if (const std::uint64_t count = std::exchange(counted_, 0); count > 0) {
    line += "; and " + more_connections(count) + " before";
  }
  return line;
}

std::string RefusalLog::take_rest() {
  const std::uint64_t count = std::exchange(counted_, 0);
  return count == 0 ? std::string() : rest_ + " " + more_connections(count);
}

}  // namespace lrun::launcher
