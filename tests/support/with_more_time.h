#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace lrun::test {

/// For what has to happen within a time that is itself tested, by a worker or by the test: on a busy machine it may
/// come too late through nobody's fault. `attempt` says what went wrong, empty: nothing, with all its times so many
/// times as long; one attempt that is well will do. A fault of lrun is in all of them.
inline void with_more_time(const std::function<std::string(int factor)>& attempt) {
  std::string problem;
  for (const int factor : {1, 4, 16}) {
    problem = attempt(factor);
    if (problem.empty()) return;
  }
  FAIL() << problem;
}

}  // namespace lrun::test
