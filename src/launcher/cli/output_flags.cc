// The options of the group 'Output': where the lines that workers print go. Each value goes into the
// OutputRequest of the LaunchRequest.
#include <utility>

#include "base/split.h"
#include "cli/flag_groups.h"
#include "cli/read_value.h"
#include "plan/resource_limit.h"

namespace lrun::launcher {
namespace {

using enum ValueKind;

constexpr std::uint64_t kLeastFileBytes = 4096;
constexpr std::uint64_t kMostLogBytes = 1ULL << 62U;

/// As in torchrun, an empty variable means torchrun's default.
bool is_empty_variable(const GivenValue& given) { return given.text.empty() && given.source == Source::kEnvironment; }

template <Setting<RankStreams> OutputRequest::*field>
void set_streams(const GivenValue& given, LaunchRequest& request) {
  const auto streams = parse_rank_streams(given.text);
  if (!streams) {
    std::string meant = example(given, "3");
    if (given.origin == "-t" && whole_number<int>(given.text)) {  // as Slurm's
      meant = "'-t' is '--tee'; '--timeout " + given.text + "m' ends a run that takes longer";
    }
    if (given.origin == "-r" && whole_number<int>(given.text)) {
      meant = "'-r' is '--redirects'; '--max-restarts " + given.text + "' restarts a run that fails";
    }
    refuse(given,
           "not a choice of streams; allowed: 0 none, 1 stdout, 2 stderr, 3 both, or by local rank, as in 0:3,1:1",
           meant);
  }
  // '0' is the default. As a value that was given it would switch lrun to torchrun's way of printing lines.
  if (*streams != RankStreams{}) request.output.*field = setting(given, *streams);
}

void set_max_file_bytes(const GivenValue& given, LaunchRequest& request) {
  const auto bytes = parse_bytes(given.text);
  if (!bytes || (*bytes > 0 && *bytes < kLeastFileBytes) || *bytes > kMostLogBytes) {
    refuse(given, "not a size of log files; allowed: 0 for no limit, or 4K and more, with K, M, G or T",
           example(given, "100M"));
  }
  request.output.max_file_bytes = *bytes;
}

void set_log_dir(const GivenValue& given, LaunchRequest& request) {
  if (is_empty_variable(given)) return;
  if (given.text.empty()) refuse(given, "the name of a directory is missing", "use '/dev/null' for no log files");
  refuse_other_than_path(given, "name a folder, and copy it there when the run is over");
  request.log_dir = setting(given, given.text);
}

void set_local_ranks(const GivenValue& given, LaunchRequest& request) {
  std::vector<int> ranks;
  for (const std::string& field : given.text.empty() ? std::vector<std::string>() : fields_of(given.text)) {
    const auto rank = number_in<int>(field);
    if (!rank || *rank < 0) {
      refuse(given, "not a list of local ranks; allowed: numbers with commas", example(given, "0,1,2"));
    }
    ranks.push_back(*rank);
  }
  request.output.local_ranks = std::move(ranks);
}

/// Splits at commas. Two commas stand for one that belongs to the text.
template <std::vector<std::string> OutputRequest::*field>
void set_filters(const GivenValue& given, LaunchRequest& request) {
  std::vector<std::string> filters(1);
  for (std::size_t i = 0; i < given.text.size(); ++i) {
    const bool is_comma = given.text[i] == ',';
    const bool is_doubled = is_comma && given.text.substr(i + 1).starts_with(',');
    if (is_comma && !is_doubled) filters.emplace_back();
    if (!is_comma || is_doubled) filters.back() += given.text[i];
    if (is_doubled) ++i;
  }
  std::erase(filters, std::string());
  request.output.*field = std::move(filters);
}

/// torchrun takes an empty one for none.
void set_prefix_template(const GivenValue& given, LaunchRequest& request) {
  if (given.text.empty() && given.source != Source::kEnvironment && request.compat != Compat::kTorchrun) {
    refuse(given, "the prefix is empty", "'--output raw' prints lines without one");
  }
  request.output.prefix_template = given.text;
}

std::string hint_about_metrics(const GivenValue& given) {
  const bool is_any = given.text.starts_with(':') || given.text.starts_with("*:");
  if (is_any) return example(given, "0.0.0.0" + given.text.substr(given.text.find(':')));
  if (given.text.find_first_of(":0123456789") != std::string::npos) return example(given, "9844");
  return example(given, "9844") + "; a file is '" + given.as_written_with("./" + given.text + ".prom") + "'";
}

void set_metrics(const GivenValue& given, LaunchRequest& request) {
  refuse_other_than_path(given, "Prometheus fetches metrics: give the port at which it finds them, as in '9844'");
  if (given.text.ends_with(".py")) refuse_program_as_value(given);
  std::optional<MetricsTarget> target = parse_metrics_target(given.text);
  if (!target) {
    refuse_program_as_value(given);
    refuse(given,
           "neither a port nor a file; allowed: a port, a numeric address with one, a path with a '/', or FILE.prom",
           hint_about_metrics(given));
  }
  request.output.metrics = setting(given, *std::move(target));
}

constexpr Flag kOutputFlags[] = {
    {.name = "output",
     .value = kRequired,
     .placeholder = "HOW",
     .group = FlagGroup::kOutput,
     .brief = "fold, prefix, raw, rank0 or quiet",
     .details = "How to print the workers' lines on the console. 'prefix': each line with its rank in front. 'fold': "
                "equal lines of several ranks once, with all their ranks in front, as in '[0-7]'. A terminal shows "
                "the first of them at once, and those of the next quarter of a second join it; elsewhere a line waits "
                "so long for them. 'raw': unchanged. 'rank0': only those of rank 0, unchanged. 'quiet': none. Log "
                "files have all lines in any case, and the verdict of a failed run shows the last ones.",
     .choices = "fold prefix raw rank0 quiet",
     .noun = "output mode",
     .default_value = "prefix",
     .apply = set_choice<kConsoleModes, &LaunchRequest::output, &OutputRequest::console>,
     .hint =
         "'--log-dir DIR' keeps the lines of each worker in a file, '> FILE' behind the line all; 'quiet' prints none"},
    {.name = "timestamps",
     .group = FlagGroup::kOutput,
     .details = "Begin every line on the console with the local time at which it was read. Log files do not change.",
     .apply = set_switch<&LaunchRequest::output, &OutputRequest::timestamps>},
    {.name = "pty",
     .group = FlagGroup::kOutput,
     .details =
         "Let each worker write to a terminal of its own instead of a pipe. This helps with programs that buffer "
         "what they write to a pipe, or that show colours and progress bars only on a terminal.",
     .apply = set_switch<&LaunchRequest::output, &OutputRequest::pty>},
    {.name = "stdin",
     .group = FlagGroup::kOutput,
     .details = "Rank 0 reads lrun's standard input; the others read nothing. On a terminal a prompt of rank 0 is "
                "shown before its line has ended.",
     .apply = set_switch<&LaunchRequest::standard_input>},
    {.name = "log-dir",
     .value = kRequired,
     .placeholder = "DIR",
     .group = FlagGroup::kOutput,
     .details = "The directory for log files, one per rank and stream; it is created if missing. Use '/dev/null' for "
                "no log files.",
     .default_value = "the run directory",
     .torchrun_variable = true,
     .apply = set_log_dir},
    {.name = "log-max-bytes",
     .value = kRequired,
     .placeholder = "SIZE",
     .group = FlagGroup::kOutput,
     .details = "The largest size of a log file, as in '100M'. At this size lrun renames 'stdout.log' to "
                "'stdout.log.1', which replaces an older one, and begins a new file.",
     .default_value = "no limit",
     .apply = set_max_file_bytes},
    {.name = "metrics",
     .value = kRequired,
     .placeholder = "PORT",
     .group = FlagGroup::kOutput,
     .details = "Offer metrics of the run to Prometheus, in the OpenMetrics format, at http://127.0.0.1:PORT/metrics; "
                "with ADDRESS:PORT at another address of this host. Port 0 is a free one, which is printed. In place "
                "of a port, a path with a '/' or with '.prom' at its end is a file that is written anew every 10 "
                "seconds, for node_exporter. Each launcher has the metrics of its own ranks. Use '/dev/null' for none.",
     .example = "9844",
     .apply = set_metrics},
    {.name = "redirects",
     .short_names = "r",
     .value = kRequired,
     .placeholder = "STREAMS",
     .group = FlagGroup::kOutput,
     .details =
         "Streams that go only to log files, as in torchrun: 0 none, 1 stdout, 2 stderr, 3 both, for all workers "
         "or by local rank, as in '0:3,1:1'. The workers write to the files themselves. Streams that neither "
         "this option nor --tee names are then lrun's own, without prefix and without a file, unless --output is "
         "given.",
     .default_value = "0",
     .torchrun_variable = true,
     .apply = set_streams<&OutputRequest::redirects>},
    {.name = "tee",
     .short_names = "t",
     .value = kRequired,
     .placeholder = "STREAMS",
     .group = FlagGroup::kOutput,
     .details =
         "Streams that go to log files and, with torchrun's prefix '[default0]:', to the console, in the form of "
         "--redirects.",
     .default_value = "0",
     .torchrun_variable = true,
     .apply = set_streams<&OutputRequest::tee>},
    {.name = "local-ranks-filter",
     .value = kRequired,
     .placeholder = "RANKS",
     .group = FlagGroup::kOutput,
     .details = "Show only the output of these local ranks, as in '0,1'. Log files have the output of all.",
     .default_value = "all",
     .torchrun_variable = true,
     .apply = set_local_ranks},
    {.name = "duplicate-stdout-filters",
     .value = kRequired,
     .placeholder = "TEXTS",
     .group = FlagGroup::kOutput,
     .details = "Copy lines of stdout that contain one of these texts, with their prefix, to the file "
                "filtered_stdout.log of all workers. Commas separate the texts; write two for a comma in a text. "
                "Streams that --redirects sends to files are not searched.",
     .torchrun_variable = true,
     .apply = set_filters<&OutputRequest::stdout_filters>},
    {.name = "duplicate-stderr-filters",
     .value = kRequired,
     .placeholder = "TEXTS",
     .group = FlagGroup::kOutput,
     .details = "The same for stderr, in filtered_stderr.log.",
     .torchrun_variable = true,
     .apply = set_filters<&OutputRequest::stderr_filters>},
    {.name = "log-line-prefix-template",
     .value = kRequired,
     .placeholder = "TEXT",
     .group = FlagGroup::kOutput,
     .details = "The prefix of each line on the console; ${role_name}, ${local_rank}, ${rank} and ${hostname} are "
                "replaced. The variable TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE does the same.",
     .default_value = "'[3] ' for rank 3",
     .torchrun_variable = true,
     .apply = set_prefix_template},
};

}  // namespace

std::span<const Flag> output_flags() { return kOutputFlags; }

}  // namespace lrun::launcher
