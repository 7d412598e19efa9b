#pragma once

#include "cli/flag_values.h"
#include "cli/flags.h"
#include "cli/run_values.h"

namespace lrun::launcher {

/// The rows of the flag table about how a run is stopped, bounded and repeated.
inline constexpr Flag kRunFlags[] = {
    {.name = "grace",
     .aliases = "shutdown-timeout",
     .value = ValueKind::kRequired,
     .placeholder = "TIME",
     .group = FlagGroup::kRun,
     .brief = "time to end after SIGTERM before SIGKILL",
     .details =
         "How long workers may take to end after they were asked to, before they are killed: '30', '30s', '1.5m', "
         "'250ms', '2h'. A bare number is seconds; 0 kills at once.",
     .default_value = "30s",
     .pet_variable = "PET_SHUTDOWN_TIMEOUT",
     .apply = flag_values::grace},
    {.name = "timeout",
     .value = ValueKind::kRequired,
     .placeholder = "TIME",
     .group = FlagGroup::kRun,
     .details = "How long the run may take, all restarts included. Then the workers are stopped and lrun exits with "
                "124. The clock also runs while the run is suspended with Ctrl-Z.",
     .default_value = "none",
     .apply = flag_values::timeout},
    {.name = "start-timeout",
     .value = ValueKind::kRequired,
     .placeholder = "TIME",
     .group = FlagGroup::kRun,
     .details = "How long all workers may take to connect to the store, which they do when they make their process "
                "group. Then the run is stopped, lrun says which ranks are missing and exits with 124.",
     .default_value = "none",
     .apply = flag_values::start_timeout},
    {.name = "hang-timeout",
     .value = ValueKind::kRequired,
     .placeholder = "TIME",
     .group = FlagGroup::kRun,
     .details = "How long no worker may make any progress. Progress is a training step where the program uses liblrun, "
                "else output that passes through lrun. Then lrun says where every rank is, as 'lrun stack' does, and "
                "does what --on-hang says. Suspended time does not count.",
     .default_value = "none",
     .apply = flag_values::hang_timeout},
    {.name = "hang-signal",
     .value = ValueKind::kRequired,
     .placeholder = "progress|cpu",
     .group = FlagGroup::kRun,
     .details = "What else counts as progress for --hang-timeout: with 'cpu' also processor time of a worker and what "
                "it started. Collective operations that wait often use it, so that a hang may not be seen.",
     .choices = "progress cpu",
     .default_value = "progress",
     .apply = flag_values::hang_signal},
    {.name = "on-hang",
     .value = ValueKind::kRequired,
     .placeholder = "dump|kill|restart",
     .group = FlagGroup::kRun,
     .details =
         "What follows a hang: 'dump' only says where every rank is, 'kill' then stops the run, which exits with "
         "124, and 'restart' starts it again as often as --max-restarts allows.",
     .choices = "dump kill restart",
     .default_value = "kill",
     .apply = flag_values::on_hang},
    {.name = "signals-to-handle",
     .value = ValueKind::kRequired,
     .placeholder = "NAMES",
     .group = FlagGroup::kRun,
     .details = "Signals that lrun passes on to the workers and that end the run. SIGUSR1 and SIGUSR2 are passed on "
                "without ending it unless they are named here. One that is not named ends lrun at once, and the "
                "workers are killed.",
     .default_value = "SIGTERM,SIGINT,SIGHUP,SIGQUIT",
     .pet_variable = "PET_SIGNALS_TO_HANDLE",
     .apply = flag_values::signals_to_handle},
    {.name = "max-restarts",
     .value = ValueKind::kRequired,
     .placeholder = "N",
     .group = FlagGroup::kRun,
     .brief = "start again after a failure, N times at most",
     .details = "How often all workers are started again after one of them failed. The workers find the number of "
                "restarts in TORCHELASTIC_RESTART_COUNT and an empty store at the same address. What fails twice in "
                "a row in the same way within a minute is not started again, but with --compat=torchrun it is.",
     .default_value = "0",
     .pet_variable = "PET_MAX_RESTARTS",
     .apply = flag_values::max_restarts},
    {.name = "restart-backoff",
     .value = ValueKind::kRequired,
     .placeholder = "TIME",
     .group = FlagGroup::kRun,
     .details = "How long to wait before the second restart in a row; it doubles with each further one, up to 5 "
                "minutes. The first restart, and the first after 10 good minutes, does not wait.",
     .default_value = "1s",
     .apply = flag_values::restart_backoff},
    {.name = "settle",
     .value = ValueKind::kRequired,
     .placeholder = "TIME",
     .group = FlagGroup::kRun,
     .details =
         "How long after a failure the other workers run on before they are stopped, so that one that failed first can "
         "still tell why. By default nothing, and 250ms when the first to end looks like a victim: its watchdog gave "
         "up, or it lost its connection to another worker.",
     .default_value = "0, or 250ms after a victim",
     .apply = flag_values::settle},
};

}  // namespace lrun::launcher
