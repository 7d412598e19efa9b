#pragma once

#include <string>
#include <string_view>

namespace lrun::launcher {

/// The names that a template of line prefixes can contain.
struct PrefixFacts {
  std::string role_name;
  int local_rank = 0;
  int rank = 0;
  std::string hostname;
};

/// Replaces $role_name, $local_rank, $rank and $hostname, with or without braces, as Python's
/// string.Template.safe_substitute() does for torchrun: '$$' is '$', and any other name stays as it is.
std::string expand_prefix(std::string_view text, const PrefixFacts& facts);

}  // namespace lrun::launcher
