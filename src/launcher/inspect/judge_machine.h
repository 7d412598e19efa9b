#pragma once

#include <string>
#include <vector>

#include "inspect/machine_facts.h"

namespace lrun::launcher {

/// A fault of a machine that keeps training from working, or from working well, and its fix.
struct Finding {
  enum class Severity {
    kProblem,  ///< runs fail
    kWarning,  ///< runs may fail or crawl
    kNote,     ///< worth knowing; the machine is healthy
  };
  std::string id;  ///< stable, for scripts: 'shm', 'memlock', …
  Severity severity = Severity::kProblem;
  std::string text;  ///< the fault: lower case, no full stop
  std::string fix;   ///< to type, or to ask an administrator for

  bool operator==(const Finding&) const = default;
};

/// All findings, in the order in which a run would meet them. Pure.
std::vector<Finding> judge_machine(const MachineFacts& facts);

/// True when there is nothing but notes.
bool is_healthy(const std::vector<Finding>& findings);

}  // namespace lrun::launcher
