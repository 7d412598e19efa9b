#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lrun::inline core {

// Values in the text of files of /proc and /sys. Pure.

/// The path behind 'N:memory:' (`controller` 'memory') or '0::' (`controller` empty) in /proc/PID/cgroup.
std::optional<std::string> cgroup_path(std::string_view proc_cgroup, std::string_view controller);

/// Whether `word` stands in a list with commas.
bool has_word(std::string_view list, std::string_view word);

/// The number at the front of a text.
std::optional<std::uint64_t> number_in(std::string_view text);

/// Whether all numbers behind `name` are `number`, in lines of 'name number number ...' with tabs; false without any.
bool only_number_of(std::string_view lines, std::string_view name, std::uint64_t number);

/// The number behind `name` in lines of 'name number', with blanks or tabs between.
std::optional<std::uint64_t> counter_named(std::string_view lines, std::string_view name);

}  // namespace lrun::inline core
