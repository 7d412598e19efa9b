#include "plan/personality.h"

namespace lrun::launcher {

Personality personality_of(Compat compat) {
  Personality personality;
  if (compat == Compat::kTorchrun) {
    personality.output = Personality::Output::kInherited;
    personality.file_per_rank = false;
    personality.log_folder = Personality::LogFolder::kTorchrun;
    personality.standard_input = Personality::Stdin::kInherited;
    personality.omp_threads = Personality::OmpThreads::kOne;
    personality.failure = Personality::Failure::kTorchrunSummary;
    personality.restart_backoff = Duration::zero();
    personality.repeats_identical = true;
    personality.only_full_signal_names = true;
    personality.every_program_is_python = true;
    personality.every_double_dollar = true;
    personality.run_name_defaults_to_none = true;
    personality.refuse_busy_gpus = false;
    personality.tells_progress = false;
    personality.refuse_missing_ranks = false;
    personality.workers_may_start = true;
    personality.verbs = false;
  }
  if (compat == Compat::kHorovodrun) {
    personality.strategy = Strategy::kHorovod;
    personality.processes_of_all_hosts = true;
    personality.verbs = false;
  }
  return personality;
}

}  // namespace lrun::launcher
