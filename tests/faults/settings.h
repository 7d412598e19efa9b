#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace lrun::test {

/// The command line of the test program.
struct Settings {
  std::uint64_t seed = 0;  ///< by chance where none is given
  int runs = 20;
  int launches = 5;
  int only = -1;  ///< the one run to play; -1: all
  int at_once = 4;
  std::string program;  ///< this one
};

Settings& settings();

/// Takes '--runs=20' and the like. \return false when it is none of them.
bool take(const std::string& word);

/// Calls `one` for every number below `count`, `settings().at_once` at the same time.
void for_each_number(int count, const std::function<void(int)>& one);

}  // namespace lrun::test
