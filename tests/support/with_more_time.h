#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace lrun::test {

/// For an action of a worker or of the test that has to happen within a time which is itself tested: on a busy machine
/// it may come too late without a bug. `attempt` returns the problem (empty: none), with all its times so many times as
/// long. One good attempt is enough, because a fault of lrun is in all of them.
inline void with_more_time(const std::function<std::string(int factor)>& attempt) {
  std::string problem;
  for (const int factor : {1, 4, 16}) {
    problem = attempt(factor);
    if (problem.empty()) return;
  }
  FAIL() << problem;
}

}  // namespace lrun::test
