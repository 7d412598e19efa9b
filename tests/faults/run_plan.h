#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace lrun::test {

/// One deed of the test to a run, `after` the deed before it.
struct Deed {
  enum class Target {
    kWorker,     ///< `rank`
    kGuard,      ///< the outer of lrun's two processes: what a person started
    kLauncher,   ///< the inner one
    kConsole,    ///< lrun's stdout is closed
    kRunFolder,  ///< is removed
  };

  Target target = Target::kGuard;
  int rank = 0;
  int signal_number = 0;
  std::chrono::milliseconds after{0};

  bool operator==(const Deed&) const = default;
};

/// The required outcome of a run.
struct Expectation {
  int exit_code = -1;  ///< -1: it dies of `signal_number`
  int signal_number = 0;
  std::string reason;            ///< in result.json; empty: there may be any result or none
  bool may_have_no_run = false;  ///< it may have been hit before there was a run folder
  int culprit = -1;              ///< the rank to blame; -1: no worker is
  std::string ending;            ///< of the culprit: 'exited' or 'signaled'
  int value = 0;
  std::string says;       ///< must be in lrun's output
  bool anything = false;  ///< any end is accepted that is bounded, clean and reported alike everywhere

  bool operator==(const Expectation&) const = default;
};

/// One short run of lrun with a fault in it. A value that follows from its seed alone.
struct RunPlan {
  std::string kind;  ///< the fault, for people
  int world_size = 1;
  std::vector<std::string> options;  ///< of lrun; '@' is the run's own folder
  std::string program;               ///< empty: the actor, which plays `scripts`
  std::vector<std::string> scripts;  ///< one a rank
  int file_limit = 0;                ///< of descriptors, hard; 0: as it is
  int file_size_limit = 0;           ///< bytes; 0: none
  bool when_ready = true;            ///< the deeds begin when every worker is ready; else with the run
  std::vector<Deed> deeds;
  std::chrono::milliseconds limit{0};  ///< from the last deed, or the start, to the end of everything
  bool counts_descriptors = false;     ///< rank 0 counts the launcher's in every attempt
  bool sees_ends_together = false;     ///< lrun stands still meanwhile
  Expectation expected;

  bool operator==(const RunPlan&) const = default;
};

/// The run with this number among those of a seed. Pure.
RunPlan make_run_plan(std::uint64_t seed, int number);

/// A description for people, on several lines.
std::string to_text(const RunPlan& plan);

}  // namespace lrun::test
