#pragma once

#include <gmock/gmock.h>

#include <initializer_list>
#include <string>
#include <vector>

using Facts = std::vector<std::string>;

/// Matches a text that has all of these facts: names, numbers, options.
MATCHER_P(HasFacts, facts, "has the facts " + testing::PrintToString(facts)) {
  for (const std::string& fact : facts) {
    if (std::string(arg).find(fact) != std::string::npos) continue;
    *result_listener << "lacks " << fact;
    return false;
  }
  return true;
}

inline auto mentions(std::initializer_list<std::string> facts) { return HasFacts(Facts(facts)); }
