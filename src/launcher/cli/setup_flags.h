#pragma once

#include "cli/flags.h"
#include "cli/setup_values.h"

namespace lrun::launcher {

/// The rows of the flag table about what is done in every worker before its program begins.
inline constexpr Flag kSetupFlags[] = {
    {.name = "chdir",
     .value = ValueKind::kRequired,
     .placeholder = "DIR",
     .group = FlagGroup::kProgram,
     .details = "Start the workers in this directory. PROGRAM and its arguments are looked for from there; lrun's own "
                "options still mean the directory where lrun was started.",
     .apply = flag_values::chdir},
    {.name = "env",
     .value = ValueKind::kRequired,
     .placeholder = "NAME[=VALUE]",
     .group = FlagGroup::kProgram,
     .details = "Give the workers this variable, as if lrun had been started with it. Without a value the variable is "
                "passed on as it is, also one that lrun takes out otherwise. May be repeated.",
     .lrun_variable = false,
     .repeatable = true,
     .apply = flag_values::env},
    {.name = "unset",
     .value = ValueKind::kRequired,
     .placeholder = "NAME",
     .group = FlagGroup::kProgram,
     .details = "Take this variable out of the workers' environment. May be repeated.",
     .lrun_variable = false,
     .repeatable = true,
     .apply = flag_values::unset},
    {.name = "rlimit",
     .value = ValueKind::kRequired,
     .placeholder = "NAME=SOFT[:HARD]",
     .group = FlagGroup::kProgram,
     .details =
         "A resource limit of the workers, as setrlimit(2) knows them: a number, with K, M, G or T for bytes, or "
         "'unlimited'. Without HARD the hard limit stays as it is. May be repeated.",
     .choices = "as core cpu data fsize locks memlock msgqueue nice nofile nproc rss rtprio rttime sigpending stack",
     .lrun_variable = false,
     .repeatable = true,
     .apply = flag_values::rlimit},
    {.name = "core",
     .group = FlagGroup::kProgram,
     .details = "Let the kernel write a core file when a worker dies of a signal, as large as the hard limit allows; "
                "the verdict says where it is, or why there is none.",
     .apply = flag_values::core},
    {.name = "wrap",
     .value = ValueKind::kRequired,
     .placeholder = "COMMAND",
     .group = FlagGroup::kProgram,
     .details =
         "Start PROGRAM through this command, as in --wrap 'nsys profile -o out.%r'; --wrap@0 or --wrap@0,2-3 is for "
         "these ranks only and wins. Words are split as a shell would quote them. '%r' is the rank, '%l' the local "
         "rank, '%a' the attempt, '%h' the host, '%%' is '%'; any other '%' is left to the command.",
     .repeatable = true,
     .per_rank = true,
     .apply = flag_values::wrap},
    {.name = "debug-rank",
     .value = ValueKind::kRequired,
     .placeholder = "RANK",
     .group = FlagGroup::kProgram,
     .details =
         "Run this rank below a debugger on this terminal: pdb for Python, gdb for anything else, or what --wrap@RANK "
         "names, as in --debug-rank 3 --wrap@3 'lldb --'. Ctrl-C is the debugger's until it ends. The other ranks run "
         "as always.",
     .lrun_variable = false,
     .apply = flag_values::debug_rank},
};

}  // namespace lrun::launcher
