// The options of the group 'Run': how a run is stopped, bounded and repeated. Each value goes into the LaunchRequest.
#include <limits>

#include "cli/flag_groups.h"
#include "cli/read_value.h"

namespace lrun::launcher {
namespace {

using enum ValueKind;

constexpr NamedValue<HangSignal> kHangSignals[] = {{"progress", HangSignal::kProgress}, {"cpu", HangSignal::kCpu}};
constexpr NamedValue<OnHang> kReactions[] = {
    {"dump", OnHang::kDump}, {"kill", OnHang::kKill}, {"restart", OnHang::kRestart}};

constexpr Flag kRunFlags[] = {
    {.name = "grace",
     .aliases = "shutdown-timeout",
     .value = kRequired,
     .placeholder = "TIME",
     .group = FlagGroup::kRun,
     .brief = "time to end after SIGTERM before SIGKILL",
     .details = "How long workers may take to end after SIGTERM before SIGKILL: '30', '30s', '1.5m', '250ms', '2h'. A "
                "bare number is seconds; 0 kills at once.",
     .example = "30s",
     .default_value = "30s",
     .torchrun_variable = true,
     .apply = set_time<&LaunchRequest::grace>},
    {.name = "timeout",
     .value = kRequired,
     .placeholder = "TIME",
     .group = FlagGroup::kRun,
     .details = "How long the run may take, all restarts included. Then the workers are stopped and lrun exits with "
                "124. The clock also runs while the run is suspended with Ctrl-Z.",
     .example = "2h",
     .default_value = "none",
     .apply = set_limit<&LaunchRequest::timeout>},
    {.name = "start-timeout",
     .value = kRequired,
     .placeholder = "TIME",
     .group = FlagGroup::kRun,
     .details = "How long all workers may take to connect to the store, which they do in init_process_group(). Then "
                "the run is stopped, lrun names the missing ranks and exits with 124.",
     .example = "5m",
     .default_value = "none",
     .apply = set_limit<&LaunchRequest::start_timeout>},
    {.name = "hang-timeout",
     .value = kRequired,
     .placeholder = "TIME",
     .group = FlagGroup::kRun,
     .details = "How long the run may go on without any progress of any worker. Progress is a training step where the "
                "program uses liblrun, else output that passes through lrun. Then lrun shows where every rank is, as "
                "'lrun stack' does, and does what --on-hang says. Suspended time does not count.",
     .example = "10m",
     .default_value = "none",
     .apply = set_limit<&LaunchRequest::hang_timeout>},
    {.name = "hang-signal",
     .value = kRequired,
     .placeholder = "progress|cpu",
     .group = FlagGroup::kRun,
     .details = "What else counts as progress for --hang-timeout: with 'cpu' also processor time of a worker and of "
                "what it started. Collective operations that wait often use processor time, so that lrun may miss a "
                "hang.",
     .choices = "progress cpu",
     .noun = "signal",
     .default_value = "progress",
     .apply = set_choice<kHangSignals, &LaunchRequest::hang_signal>},
    {.name = "on-hang",
     .value = kRequired,
     .placeholder = "dump|kill|restart",
     .group = FlagGroup::kRun,
     .details = "The reaction to a hang: 'dump' only shows where every rank is, 'kill' then stops the run, which exits "
                "with 124, and 'restart' starts it again as often as --max-restarts allows.",
     .choices = "dump kill restart",
     .noun = "reaction",
     .default_value = "kill",
     .apply = set_choice<kReactions, &LaunchRequest::on_hang>},
    // The planner looks the names up: an unknown one is an error for lrun and a warning for torchrun.
    {.name = "signals-to-handle",
     .value = kRequired,
     .placeholder = "NAMES",
     .group = FlagGroup::kRun,
     .details = "Signals that lrun passes on to the workers and that end the run. SIGUSR1 and SIGUSR2 are passed on "
                "without ending it unless they are named here. Any other signal ends lrun at once, and the workers are "
                "killed.",
     .default_value = "SIGTERM,SIGINT,SIGHUP,SIGQUIT",
     .torchrun_variable = true,
     .apply = set_text<&LaunchRequest::signals_to_handle>},
    {.name = "max-restarts",
     .value = kRequired,
     .placeholder = "N",
     .group = FlagGroup::kRun,
     .brief = "start again after a failure, N times at most",
     .details = "How often all workers are started again after one of them failed. The workers find the number of "
                "restarts in TORCHELASTIC_RESTART_COUNT and an empty store at the same address. A program that fails "
                "twice in a row in the same way within a minute is not started again, except with --compat=torchrun.",
     .default_value = "0",
     .torchrun_variable = true,
     .apply = set_number<0, std::numeric_limits<int>::max(), &LaunchRequest::max_restarts>},
    {.name = "restart-backoff",
     .value = kRequired,
     .placeholder = "TIME",
     .group = FlagGroup::kRun,
     .details = "How long to wait before the second restart in a row; it doubles with each further one, up to 5 "
                "minutes. The first restart, and the first after 10 good minutes, does not wait.",
     .example = "30s",
     .default_value = "1s",
     .apply = set_time<&LaunchRequest::restart_backoff>},
    {.name = "settle",
     .value = kRequired,
     .placeholder = "TIME",
     .group = FlagGroup::kRun,
     .details = "How long the other workers run on after a failure, so that one that failed first can still report its "
                "error. By default they do not, or for 250ms when the first worker to end looks like a victim: its "
                "watchdog gave up, or it lost its connection to another worker.",
     .example = "2s",
     .default_value = "0, or 250ms after a victim",
     .apply = set_time<&LaunchRequest::settle>},
};

}  // namespace

std::span<const Flag> run_flags() { return kRunFlags; }

}  // namespace lrun::launcher
