#pragma once

#include <string>
#include <string_view>

namespace lrun::launcher {

/// A new run's name: UTC time and random letters, so that names sort by age: '20261121-204530-x7k2q9'.
std::string make_run_id();

/// True of a name that make_run_id() could have made. It is the name of a folder.
bool is_run_id(std::string_view name);

}  // namespace lrun::launcher
