#pragma once

#include <optional>

#include "plan/launch_request.h"

namespace lrun::launcher {

/// The defaults in which lrun, torchrun and horovodrun differ, as one value in the plan. logs, supervise and report
/// read it and never ask which command was typed.
struct Personality {
  enum class Output { kPrefixed, kInherited };  ///< lines with a rank prefix, or the workers own our descriptors
  enum class Stdin { kNull, kInherited };
  enum class LogFolder { kRun, kTorchrun };    ///< the run directory's layout, or '<run name>_<letters>' in a base
  enum class OmpThreads { kFairShare, kOne };  ///< cores / workers, or 1 as soon as there are several workers
  enum class Failure { kVerdict, kTorchrunSummary };

  Output output = Output::kPrefixed;
  bool file_per_rank = true;
  LogFolder log_folder = LogFolder::kRun;
  Stdin standard_input = Stdin::kNull;
  OmpThreads omp_threads = OmpThreads::kFairShare;
  Failure failure = Failure::kVerdict;
  Duration restart_backoff{1000};          ///< torchrun has none
  bool repeats_identical = false;          ///< torchrun also restarts a program that fails twice in the same way
  bool only_full_signal_names = false;     ///< torchrun takes 'SIGTERM' and warns about 'TERM'; lrun takes both
  bool every_program_is_python = false;    ///< torchrun gives every program to Python without --no-python
  bool every_double_dollar = false;        ///< torchrun replaces every '$$' of an argument by '$'
  bool run_name_defaults_to_none = false;  ///< TORCHELASTIC_RUN_ID without --rdzv-id is 'none', not the run's own name
  bool refuse_busy_gpus = true;           ///< GPUs that were asked for and are busy are refused; torchrun does not look
  bool tells_progress = true;             ///< workers get LRUN_PROGRESS_FD even without --hang-timeout
  bool refuse_missing_ranks = true;       ///< local ranks in --tee, --redirects, --local-ranks-filter have to exist
  bool workers_may_start = false;         ///< for --monitor-interval after a failure in the first second
  bool verbs = true;                      ///< 'doctor', 'status', ... as the first word
  bool processes_of_all_hosts = false;    ///< '-np N' is a total, placed on the first hosts of a list that have room
  std::optional<Strategy> strategy = {};  ///< without --strategy; empty: it follows from the devices

  bool operator==(const Personality&) const = default;
};

/// The personality of a command line.
Personality personality_of(Compat compat);

}  // namespace lrun::launcher
