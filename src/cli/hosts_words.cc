#include "cli/hosts_words.h"

#include <utility>

namespace lrun {
namespace {

constexpr std::size_t kMostKept = std::size_t{64} * 1024;

}  // namespace

std::string HostsWords::of_job(std::size_t host, const std::string& text) {
  if (host == voice_) return text;
  std::string& kept = hosts_[host].text;
  if (kept.size() + text.size() <= kMostKept) kept += text;
  return {};
}

std::string HostsWords::lost(std::size_t host) {
  hosts_[host].lost = true;
  std::string shown;
  while (voice_ < hosts_.size() && hosts_[voice_].lost) {
    if (++voice_ < hosts_.size()) shown += std::exchange(hosts_[voice_].text, {});
  }
  return shown;
}

}  // namespace lrun
