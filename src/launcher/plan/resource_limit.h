#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/setting.h"

namespace lrun::launcher {

/// A resource limit of setrlimit(2) for workers.
struct ResourceLimit {
  static constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};

  int resource = 0;                   ///< RLIMIT_NOFILE, ...
  std::uint64_t soft = 0;             ///< in the resource's own unit: bytes, descriptors, seconds
  std::optional<std::uint64_t> hard;  ///< empty: unchanged, but at least `soft`
  Source source = Source::kFlag;
  std::string origin;  ///< '--rlimit', 'lrun.toml:3: rlimit'

  bool operator==(const ResourceLimit&) const = default;
};

/// 'as core cpu data fsize locks memlock msgqueue nice nofile nproc rss rtprio rttime sigpending stack'
std::vector<std::string> resource_names();

/// 'nofile'. \param resource  from find_resource()
std::string resource_name(int resource);

/// The resource called 'nofile', 'NOFILE' or 'RLIMIT_NOFILE'.
std::optional<int> find_resource(std::string_view name);

/// Reads a number of bytes: a whole number, with K, M, G or T behind it, or 'unlimited'. Empty for any other text.
std::optional<std::uint64_t> parse_bytes(std::string_view text);

/// Reads SOFT or SOFT:HARD: whole numbers, with K, M, G or T behind those that count bytes, or 'unlimited'. Empty for
/// any other text, and where SOFT is above HARD.
std::optional<ResourceLimit> parse_limit(int resource, std::string_view text);

/// 'nofile=1024:4096', 'core=unlimited'.
std::string text_of(const ResourceLimit& limit);

/// Adds a limit. It replaces one for the same resource.
void add_limit(std::vector<ResourceLimit>& limits, ResourceLimit limit);

}  // namespace lrun::launcher
