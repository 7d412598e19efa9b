// The options of the group 'Run': how a run is stopped, bounded and repeated. Each value goes into the LaunchRequest.
#include <fmt/format.h>

#include <limits>
#include <utility>
#include <variant>
#include <vector>

#include "cli/flag_groups.h"
#include "cli/read_value.h"

namespace lrun::launcher {
namespace {

using enum ValueKind;

constexpr NamedValue<HangSignal> kHangSignals[] = {{"progress", HangSignal::kProgress}, {"cpu", HangSignal::kCpu}};
constexpr NamedValue<OnHang> kReactions[] = {
    {"dump", OnHang::kDump}, {"kill", OnHang::kKill}, {"restart", OnHang::kRestart}};

void add_watch_rule(const GivenValue& given, LaunchRequest& request) {
  auto parsed = parse_watch_rule(given.text);
  if (const auto* const problem = std::get_if<LinePattern::Problem>(&parsed))
    refuse(given, problem->what, problem->hint);
  std::vector<WatchRule>& rules = request.output.watch;
  if (rules.size() == WatchRule::kMost) {
    refuse(given, fmt::format("there are {} rules already", WatchRule::kMost), "join patterns with '|'");
  }
  rules.push_back(std::get<WatchRule>(std::move(parsed)));
  rules.back().ranks = ranks_of(given);
  rules.back().origin = setting(given, std::string()).origin;
}

void set_checkpoint_path(const GivenValue& given, LaunchRequest& request) {
  if (given.text.empty()) refuse(given, "the name of a file or folder is missing", example(given, "checkpoints"));
  refuse_other_than_path(given, "name the folder of this host in which checkpoints are kept first");
  request.checkpoint_path = setting(given, given.text);
}

void set_notice(const GivenValue& given, LaunchRequest& request) {
  refuse_other_than_path(given, "for a cloud write its name, as in 'aws'");
  std::optional<NoticeSource> source = parse_notice_source(given.text);
  if (!source) {
    refuse_program_as_value(given);
    refuse_choice(given, "neither a cloud nor a file; allowed: aws, azure, gcp, or a path with a '/'",
                  {"aws", "azure", "gcp"}, "aws");
  }
  request.notice = setting(given, *std::move(source));
}

constexpr Flag kRunFlags[] = {
    {.name = "grace",
     .aliases = "shutdown-timeout",
     .value = kRequired,
     .placeholder = "TIME",
     .group = FlagGroup::kRun,
     .details = "The time that workers have to exit after SIGTERM before lrun sends SIGKILL: '30', '30s', '1.5m', "
                "'250ms', '2h'. A bare number is in seconds; 0 kills at once.",
     .example = "30s",
     .default_value = "30s",
     .torchrun_variable = true,
     .apply = set_time<&LaunchRequest::grace>},
    {.name = "timeout",
     .value = kRequired,
     .placeholder = "TIME",
     .group = FlagGroup::kRun,
     .details = "The time limit of the run, including restarts. At its end lrun stops the workers and exits with 124. "
                "The clock also runs while the run is suspended with Ctrl-Z.",
     .example = "2h",
     .default_value = "none",
     .apply = set_limit<&LaunchRequest::timeout>},
    {.name = "start-timeout",
     .value = kRequired,
     .placeholder = "TIME",
     .group = FlagGroup::kRun,
     .details = "The time in which all workers have to call init_process_group(), which connects to the store. At its "
                "end lrun stops the run, names the missing ranks and exits with 124.",
     .example = "5m",
     .default_value = "none",
     .apply = set_limit<&LaunchRequest::start_timeout>},
    {.name = "hang-timeout",
     .value = kRequired,
     .placeholder = "TIME",
     .group = FlagGroup::kRun,
     .details = "The time without progress of any worker after which the run hangs. Progress is a training step of a "
                "program that uses liblrun, else output that passes through lrun. lrun then prints the stack of every "
                "rank, as 'lrun stack' does, and reacts as --on-hang says. Suspended time does not count.",
     .example = "10m",
     .default_value = "none",
     .apply = set_limit<&LaunchRequest::hang_timeout>},
    {.name = "hang-signal",
     .value = kRequired,
     .placeholder = "progress|cpu",
     .group = FlagGroup::kRun,
     .details = "With 'cpu', CPU time of a worker and its children also counts as progress for --hang-timeout. "
                "Collective operations often use CPU time while they wait, so lrun may then miss a hang.",
     .choices = "progress cpu",
     .noun = "signal",
     .default_value = "progress",
     .apply = set_choice<kHangSignals, &LaunchRequest::hang_signal>},
    {.name = "on-hang",
     .value = kRequired,
     .placeholder = "dump|kill|restart",
     .group = FlagGroup::kRun,
     .details = "The reaction to a hang. 'dump': only print the stacks. 'kill': also stop the run and exit with 124. "
                "'restart': also restart it, as often as --max-restarts allows.",
     .choices = "dump kill restart",
     .noun = "reaction",
     .default_value = "kill",
     .apply = set_choice<kReactions, &LaunchRequest::on_hang>},
    {.name = "watch",
     .value = kRequired,
     .placeholder = "RULE",
     .group = FlagGroup::kRun,
     .details =
         "A rule on the lines that workers print, in single quotes: PATTERN, or 'PATTERN => TESTS REACTION'. PATTERN "
         "is "
         "an extended regular expression; TESTS are about the number in its first group, and one has to hold: 'nan', "
         "'inf', '> 100', '< 0', '3x' (the median of the rank's last hundred), or 'silent 5m' (no further such line of "
         "a rank that runs). REACTION is 'warn', 'stop' (the run ends with 124) or 'restart' (as often as "
         "--max-restarts allows). Without tests a pattern with a group asks for nan and inf, and one without for any "
         "line; without a reaction the run stops. --watch@0 or --watch@0,2-3 is for these ranks only. May be given 16 "
         "times.",
     .example = "loss=([^ ]+) => nan, > 100 stop",
     .repeatable = true,
     .per_rank = true,
     .apply = add_watch_rule},
    {.name = "notice",
     .value = kRequired,
     .placeholder = "WHERE",
     .group = FlagGroup::kRun,
     .details = "Stop, as after SIGTERM, when a notice says that this machine is about to go: 'aws', 'azure' or 'gcp' "
                "for the metadata of that cloud (AWS: spot instances), or a path with a '/' for a file that somebody "
                "makes, whose first line the verdict quotes. Of an elastic job only this node leaves. Clouds are asked "
                "every 5 seconds, and a file is looked for every second. Azure and Google Cloud leave 30 seconds: "
                "'--grace 20s' fits. Use '/dev/null' for no notices.",
     .choices = "aws azure gcp",
     .example = "aws",
     .apply = set_notice},
    // The planner reads the names, because an unknown one is an error for lrun and a warning for torchrun.
    {.name = "signals-to-handle",
     .value = kRequired,
     .placeholder = "NAMES",
     .group = FlagGroup::kRun,
     .details = "Signals that lrun passes on to the workers and that end the run. SIGUSR1 and SIGUSR2 are passed on, "
                "and end the run only if they are named here. Any other signal ends lrun at once, and the workers are "
                "killed.",
     .default_value = "SIGTERM,SIGINT,SIGHUP,SIGQUIT",
     .torchrun_variable = true,
     .apply = set_text<&LaunchRequest::signals_to_handle>},
    {.name = "max-restarts",
     .value = kRequired,
     .placeholder = "N",
     .group = FlagGroup::kRun,
     .brief = "restart after a failure, at most N times",
     .details = "The number of times that lrun restarts all workers after one of them failed. The workers find the "
                "number of restarts in TORCHELASTIC_RESTART_COUNT, and an empty store at the same address. A program "
                "that fails twice in the same way within a minute is not restarted, except with --compat=torchrun.",
     .example = "3",
     .default_value = "0",
     .torchrun_variable = true,
     .apply = set_number<0, std::numeric_limits<int>::max(), &LaunchRequest::max_restarts>},
    {.name = "checkpoint-path",
     .value = kRequired,
     .placeholder = "PATH",
     .group = FlagGroup::kRun,
     .details =
         "Where the program writes its checkpoints: a file, a folder, or a pattern in single quotes. "
         "--max-restarts then counts the restarts since the newest one was written, there or in "
         "LRUN_MEMORY_DIR: a run that makes progress is restarted as often as it needs. 'lrun report' tells how much "
         "work each attempt has kept. Empty files do not count, nor hidden ones in a folder, nor names like x.tmp, "
         "x.new or x.part.",
     .example = "'runs/step_*'",
     .apply = set_checkpoint_path},
    {.name = "restart-backoff",
     .value = kRequired,
     .placeholder = "TIME",
     .group = FlagGroup::kRun,
     .details = "The time to wait before the second restart in a row; it doubles with each further restart, up to 5 "
                "minutes. The first restart does not wait, and neither does the first one after 10 good minutes.",
     .example = "30s",
     .default_value = "1s",
     .apply = set_time<&LaunchRequest::restart_backoff>},
    {.name = "settle",
     .value = kRequired,
     .placeholder = "TIME",
     .group = FlagGroup::kRun,
     .details = "The time that the other workers run on after a failure, so that the one that caused it can still "
                "report its error. The default is 0, or 250ms when the first worker to exit looks like a victim: its "
                "watchdog gave up, or it lost its connection to another worker.",
     .example = "2s",
     .default_value = "0, or 250ms after a victim",
     .apply = set_time<&LaunchRequest::settle>},
};

}  // namespace

std::span<const Flag> run_flags() { return kRunFlags; }

}  // namespace lrun::launcher
