#pragma once

#include <string>
#include <vector>

#include "inspect/machine_facts.h"

namespace lrun::launcher {

/// Something about a machine that keeps training from working, or from working well, and what to do about it.
struct Finding {
  enum class Severity {
    kProblem,  ///< runs fail
    kWarning,  ///< runs may fail or crawl
    kNote,     ///< worth knowing, healthy all the same
  };
  std::string id;  ///< stable, for scripts: 'shm', 'memlock', …
  Severity severity = Severity::kProblem;
  std::string text;  ///< what is wrong: lower case, no full stop
  std::string fix;   ///< what to type or ask for

  bool operator==(const Finding&) const = default;
};

/// All findings, in the order in which a run would meet them. Pure.
std::vector<Finding> judge_machine(const MachineFacts& facts);

/// True when there is nothing but notes.
bool is_healthy(const std::vector<Finding>& findings);

}  // namespace lrun::launcher
