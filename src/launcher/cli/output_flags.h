#pragma once

#include "cli/flags.h"
#include "cli/output_values.h"

namespace lrun::launcher {

/// The rows of the flag table about what workers print.
inline constexpr Flag kOutputFlags[] = {
    {.name = "output",
     .value = ValueKind::kRequired,
     .placeholder = "HOW",
     .group = FlagGroup::kOutput,
     .brief = "fold, prefix, raw, rank0 or quiet",
     .details =
         "How the workers' lines look on the console. 'prefix': every line with its rank in front. 'fold': the "
         "same line of several ranks once, with all of their ranks in front, as in '[0-7]'; the first one is "
         "shown at once, copies that come later within a quarter of a second follow together. 'raw': as the "
         "workers wrote them. 'rank0': only rank 0's, as it wrote them. 'quiet': none. Log files hold everything "
         "in any case, and the verdict of a failed run shows the last lines.",
     .choices = "fold prefix raw rank0 quiet",
     .default_value = "prefix",
     .apply = flag_values::output},
    {.name = "timestamps",
     .group = FlagGroup::kOutput,
     .details = "Every line on the console begins with the local time at which it was read. Log files stay as they "
                "are.",
     .apply = flag_values::timestamps},
    {.name = "pty",
     .group = FlagGroup::kOutput,
     .details = "Workers write to a terminal of their own instead of a pipe, for programs that buffer what they write "
                "to a pipe, or that show colours and bars only on a terminal.",
     .apply = flag_values::pty},
    {.name = "stdin",
     .group = FlagGroup::kOutput,
     .details = "Rank 0 reads lrun's standard input; the others read nothing. On a terminal what rank 0 asks is shown "
                "before its line has ended.",
     .apply = flag_values::standard_input},
    {.name = "log-dir",
     .value = ValueKind::kRequired,
     .placeholder = "DIR",
     .group = FlagGroup::kOutput,
     .brief = "where log files go",
     .details = "The directory for log files, one per rank and stream; made when it is not there. '/dev/null' switches "
                "the files off.",
     .default_value = "the run directory",
     .pet_variable = "PET_LOG_DIR",
     .apply = flag_values::log_dir},
    {.name = "log-max-bytes",
     .value = ValueKind::kRequired,
     .placeholder = "SIZE",
     .group = FlagGroup::kOutput,
     .details =
         "How large a log file may grow, as in '100M'. It is then renamed, 'stdout.log' to 'stdout.log.1' in place "
         "of an older one, and begun anew, so that each stream has the last one to two times this much.",
     .default_value = "no limit",
     .apply = flag_values::log_max_bytes},
    {.name = "redirects",
     .short_names = "r",
     .value = ValueKind::kRequired,
     .placeholder = "STREAMS",
     .group = FlagGroup::kOutput,
     .details =
         "Streams that go to log files only, as torchrun has it: 0 none, 1 stdout, 2 stderr, 3 both, for all workers "
         "or by local rank, as in '0:3,1:1'. The worker writes to the file itself. Streams that neither this option "
         "nor the next one names are then lrun's own, without prefix and without a file, unless --output is given.",
     .default_value = "0",
     .pet_variable = "PET_REDIRECTS",
     .apply = flag_values::redirects},
    {.name = "tee",
     .short_names = "t",
     .value = ValueKind::kRequired,
     .placeholder = "STREAMS",
     .group = FlagGroup::kOutput,
     .details =
         "Streams that go to log files and, with torchrun's prefix '[default0]:', to the console; written as for "
         "--redirects.",
     .default_value = "0",
     .pet_variable = "PET_TEE",
     .apply = flag_values::tee},
    {.name = "local-ranks-filter",
     .value = ValueKind::kRequired,
     .placeholder = "RANKS",
     .group = FlagGroup::kOutput,
     .details = "Local ranks whose output is shown, as in '0,1'; that of the others is only in the files.",
     .default_value = "all",
     .pet_variable = "PET_LOCAL_RANKS_FILTER",
     .apply = flag_values::local_ranks_filter},
    {.name = "duplicate-stdout-filters",
     .value = ValueKind::kRequired,
     .placeholder = "TEXTS",
     .group = FlagGroup::kOutput,
     .details = "Lines of stdout that hold one of these texts are copied, prefix included, to the file "
                "filtered_stdout.log of all workers. Commas separate the texts; two commas are one comma of a text. "
                "Streams that only --redirects names are not looked at.",
     .pet_variable = "PET_DUPLICATE_STDOUT_FILTERS",
     .apply = flag_values::duplicate_stdout_filters},
    {.name = "duplicate-stderr-filters",
     .value = ValueKind::kRequired,
     .placeholder = "TEXTS",
     .group = FlagGroup::kOutput,
     .details = "The same for stderr and filtered_stderr.log.",
     .pet_variable = "PET_DUPLICATE_STDERR_FILTERS",
     .apply = flag_values::duplicate_stderr_filters},
    {.name = "log-line-prefix-template",
     .value = ValueKind::kRequired,
     .placeholder = "TEXT",
     .group = FlagGroup::kOutput,
     .details = "What stands before each line on the console; ${role_name}, ${local_rank}, ${rank} and ${hostname} are "
                "replaced. The variable TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE says the same.",
     .default_value = "'[3] ' for rank 3",
     .pet_variable = "PET_LOG_LINE_PREFIX_TEMPLATE",
     .apply = flag_values::log_line_prefix_template},
};

}  // namespace lrun::launcher
