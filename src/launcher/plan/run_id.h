#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lrun::launcher {

/// A new run's name: UTC time and random letters, so that names sort by age: '20261121-204530-x7k2q9'.
std::string make_run_id();

/// True of a name that make_run_id() could have made. It is the name of a folder.
bool is_run_id(std::string_view name);

/// The second in which such a name was made, in milliseconds since the epoch; 0: it is no such name. Pure.
std::int64_t time_of_run_id(std::string_view name);

}  // namespace lrun::launcher
