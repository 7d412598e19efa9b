#pragma once

#include <optional>

#include "plan/launch_request.h"

namespace lrun::launcher {

/// The defaults in which lrun, torchrun and horovodrun differ, as one value in the plan: logs, supervise and report
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
  Duration restart_backoff{1000};        ///< torchrun has none
  bool repeats_identical = false;        ///< torchrun restarts also what failed twice in the same way while it started
  bool only_full_signal_names = false;   ///< 'SIGTERM', as torchrun, which warns of others; else others are an error
  bool every_program_is_python = false;  ///< torchrun gives every program to Python unless told --no-python
  bool every_double_dollar = false;      ///< torchrun makes every '$$' of an argument a '$'
  bool unnamed_run_is_none = false;      ///< TORCHELASTIC_RUN_ID without --rdzv-id is 'none', else the run's own name
  bool refuse_busy_gpus = true;          ///< GPUs asked for that others compute on; torchrun does not look
  bool tells_progress = true;            ///< workers get LRUN_PROGRESS_FD; else only with --hang-timeout
  bool refuse_missing_ranks = true;  ///< a local rank named in --tee, --redirects or --local-ranks-filter has to exist
  bool workers_may_start = false;    ///< --monitor-interval after a failure in the first second, as in torchrun's poll
  bool verbs = true;                 ///< 'doctor', 'status', ... as the first word
  bool processes_of_all_hosts =
      false;  ///< '-np N' places N workers in all, on the first hosts of a list that have room
  std::optional<Strategy> strategy = {};  ///< without --strategy; empty: as the devices say

  bool operator==(const Personality&) const = default;
};

/// The personality of a command line.
Personality personality_of(Compat compat);

}  // namespace lrun::launcher
