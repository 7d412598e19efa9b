// The options of the group 'Information', which print facts about a run instead of changing it. The last rows are
// options of torchrun that lrun only accepts.
#include <chrono>
#include <cstdlib>

#include "base/user_error.h"
#include "cli/flag_groups.h"
#include "cli/read_value.h"

namespace lrun::launcher {
namespace {

using enum ValueKind;

void set_dry_run(const GivenValue& given, LaunchRequest& request) {
  if (given.source == Source::kEnvironment && (given.text == "1" || given.text == "0")) {
    request.dry_run = given.text == "1" ? DryRun::kText : DryRun::kNo;
    return;
  }
  request.dry_run = choice_of(given) == "json" ? DryRun::kJson : DryRun::kText;
}

/// The number of times that the option was given, or the number in a variable or file.
void set_verbosity(const GivenValue& given, LaunchRequest& request) {
  constexpr int kMost = 9;
  if (given.source == Source::kFlag) {
    request.verbosity = std::min(number_between(given, 0, 1'000'000), kMost);
  } else if (given.text == "true" || given.text == "false") {
    request.verbosity = given.text == "true" ? 1 : 0;
  } else {
    request.verbosity = number_between(given, 0, kMost);
  }
}

constexpr Flag kInformationFlags[] = {
    {.name = "config",
     .value = kRequired,
     .placeholder = "FILE",
     .group = FlagGroup::kInformation,
     .details = "Read defaults from this TOML file: every long option by its name, as in 'devices = 8' or 'strategy = "
                "\"ddp\"', and true or false for a switch. Options and variables override it. Use '/dev/null' for no "
                "file.",
     .default_value = "lrun.toml in this directory, if it exists",
     .action = FlagAction::kConfigFile},
    {.name = "print-config",
     .group = FlagGroup::kInformation,
     .details = "Print every setting with its value and source, as a file for --config, and start nothing.",
     .lrun_variable = false,
     .action = FlagAction::kPrintConfig},
    {.name = "dry-run",
     .value = kOptional,
     .placeholder = "text|json",
     .group = FlagGroup::kInformation,
     .brief = "show the plan, start nothing",
     .details = "Print every decision of the run with its reason, and start nothing.",
     .choices = "text json",
     .noun = "format",
     .apply = set_dry_run},
    {.name = "verbose",
     .short_names = "v",
     .group = FlagGroup::kInformation,
     .details = "Print on stderr what lrun does, and the environment variables that lrun changes for the workers. Give "
                "it twice for more.",
     .counted = true,
     .apply = set_verbosity},
    {.name = "version",
     .group = FlagGroup::kInformation,
     .details = "Print the version, below it the commit, the compiler and the oldest glibc of this build, and exit.",
     .lrun_variable = false,
     .action = FlagAction::kVersion},
    {.name = "help",
     .short_names = "h",
     .group = FlagGroup::kInformation,
     .brief = "-h this screen, --help everything",
     .details = "-h prints one screen, --help everything.",
     .lrun_variable = false,
     .action = FlagAction::kHelp},
};

/// Accepts only the row's neutral value.
void require_neutral(const GivenValue& given, LaunchRequest& /*request*/) {
  if (given.text.empty() || given.text == given.flag->neutral_value) return;
  throw UserError(given.quoted() + " is not supported", std::string(given.flag->hint));
}

void require_choice(const GivenValue& given, LaunchRequest& /*request*/) { (void)choice_of(given); }

/// lrun never polls. It keeps one effect of torchrun's polling: after a failure the other workers have this time, up to
/// a second, to start.
void set_monitor_interval(const GivenValue& given, LaunchRequest& request) {
  constexpr double kMostSeconds = 1;
  char* stop = nullptr;
  const double seconds = std::strtod(given.text.c_str(), &stop);  // takes what Python's float() takes
  if (given.text.empty() || *stop != '\0' || !(seconds > 0)) {
    refuse(given, "not a number of seconds above 0", example(given, "0.1"));
  }
  request.monitor_interval =
      std::chrono::round<Duration>(std::chrono::duration<double>(std::min(seconds, kMostSeconds)));
}

constexpr Flag kTorchrunsFlags[] = {
    {.name = "standalone",
     .group = FlagGroup::kNotInThisVersion,
     .torchrun_variable = true,
     .apply = set_switch<&LaunchRequest::standalone>,
     .neutral_value = "*"},
    {.name = "monitor-interval",
     .value = kRequired,
     .placeholder = "VALUE",
     .group = FlagGroup::kNotInThisVersion,
     .torchrun_variable = true,
     .apply = set_monitor_interval,
     .neutral_value = "*"},
    {.name = "start-method",
     .value = kRequired,
     .placeholder = "VALUE",
     .group = FlagGroup::kNotInThisVersion,
     .choices = "spawn fork forkserver",
     .noun = "choice",
     .torchrun_variable = true,
     .apply = require_choice,
     .neutral_value = "*"},
    {.name = "event-log-handler",
     .value = kRequired,
     .placeholder = "VALUE",
     .group = FlagGroup::kNotInThisVersion,
     .torchrun_variable = true,
     .apply = require_neutral,
     .neutral_value = "null",
     .hint = "leave it out"},
    {.name = "logs-specs",
     .value = kRequired,
     .placeholder = "VALUE",
     .group = FlagGroup::kNotInThisVersion,
     .apply = require_neutral,
     .neutral_value = "default",
     .hint = "leave it out"},
    {.name = "print-completion",
     .value = kRequired,
     .placeholder = "VALUE",
     .group = FlagGroup::kNotInThisVersion,
     .apply = require_neutral,
     .hint = "completions for bash, zsh and fish are installed with lrun"},
};

}  // namespace

std::span<const Flag> information_flags() { return kInformationFlags; }

std::span<const Flag> torchruns_flags() { return kTorchrunsFlags; }

}  // namespace lrun::launcher
