// The resource limits of setrlimit(2) by name, and their values as text. program_flags reads them; show_plan writes
// them.
#include "plan/resource_limit.h"

#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include "base/split.h"

namespace lrun::launcher {
namespace {

static_assert(RLIM_INFINITY == ResourceLimit::kUnlimited);

struct Resource {
  std::string_view name;
  int number;
  bool bytes;
};

constexpr Resource kResources[] = {
    {"as", RLIMIT_AS, true},           {"core", RLIMIT_CORE, true},         {"cpu", RLIMIT_CPU, false},
    {"data", RLIMIT_DATA, true},       {"fsize", RLIMIT_FSIZE, true},       {"locks", RLIMIT_LOCKS, false},
    {"memlock", RLIMIT_MEMLOCK, true}, {"msgqueue", RLIMIT_MSGQUEUE, true}, {"nice", RLIMIT_NICE, false},
    {"nofile", RLIMIT_NOFILE, false},  {"nproc", RLIMIT_NPROC, false},      {"rss", RLIMIT_RSS, true},
    {"rtprio", RLIMIT_RTPRIO, false},  {"rttime", RLIMIT_RTTIME, false},    {"sigpending", RLIMIT_SIGPENDING, false},
    {"stack", RLIMIT_STACK, true},
};

const Resource& resource_of(int number) {
  return *std::find_if(std::begin(kResources), std::end(kResources),
                       [&](const Resource& resource) { return resource.number == number; });
}

/// The power of two that a suffix stands for.
std::optional<unsigned> shift_of(std::string_view suffix, bool bytes) {
  if (suffix.empty()) return 0;
  if (!bytes || suffix.size() != 1) return std::nullopt;
  constexpr std::string_view kLetters = "kmgt";
  const auto letter = kLetters.find(static_cast<char>(suffix.front() | 0x20));
  if (letter == std::string_view::npos) return std::nullopt;
  constexpr unsigned kBitsOfThousand = 10;
  return static_cast<unsigned>(letter + 1) * kBitsOfThousand;
}

std::optional<std::uint64_t> parse_amount(std::string_view text, bool bytes) {
  if (text == "unlimited" || text == "infinity") return ResourceLimit::kUnlimited;
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc()) return std::nullopt;
  const auto shift = shift_of(std::string_view(stop, static_cast<std::size_t>(end - stop)), bytes);
  if (!shift || number > (ResourceLimit::kUnlimited - 1) >> *shift) return std::nullopt;
  return number << *shift;
}

std::string amount_text(std::uint64_t amount) {
  return amount == ResourceLimit::kUnlimited ? "unlimited" : std::to_string(amount);
}

}  // namespace

std::optional<std::uint64_t> parse_bytes(std::string_view text) { return parse_amount(text, true); }

std::vector<std::string> resource_names() {
  std::vector<std::string> names;
  for (const Resource& resource : kResources) names.emplace_back(resource.name);
  return names;
}

std::string resource_name(int resource) { return std::string(resource_of(resource).name); }

std::optional<int> find_resource(std::string_view name) {
  constexpr std::string_view kPrefix = "rlimit_";
  std::string lower = lower_case(std::string(name));
  if (lower.starts_with(kPrefix)) lower.erase(0, kPrefix.size());
  for (const Resource& resource : kResources) {
    if (resource.name == lower) return resource.number;
  }
  return std::nullopt;
}

std::optional<ResourceLimit> parse_limit(int resource, std::string_view text) {
  const bool bytes = resource_of(resource).bytes;
  const std::size_t colon = text.find(':');
  const auto soft = parse_amount(text.substr(0, colon), bytes);
  if (!soft) return std::nullopt;
  ResourceLimit limit{resource, *soft, std::nullopt, Source::kFlag, {}};
  if (colon == std::string_view::npos) return limit;
  limit.hard = parse_amount(text.substr(colon + 1), bytes);
  if (!limit.hard || *limit.hard < limit.soft) return std::nullopt;
  return limit;
}

std::string text_of(const ResourceLimit& limit) {
  const std::string soft = resource_name(limit.resource) + "=" + amount_text(limit.soft);
  return limit.hard ? soft + ":" + amount_text(*limit.hard) : soft;
}

void add_limit(std::vector<ResourceLimit>& limits, ResourceLimit limit) {
  const auto same = std::find_if(limits.begin(), limits.end(),
                                 [&](const ResourceLimit& other) { return other.resource == limit.resource; });
  if (same == limits.end()) {
    limits.push_back(std::move(limit));
  } else {
    *same = std::move(limit);
  }
}

}  // namespace lrun::launcher
