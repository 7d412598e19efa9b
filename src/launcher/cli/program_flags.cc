// The options of the group 'Program': the kind of PROGRAM, and the preparation of every worker before it starts. Each
// value goes into the LaunchRequest, most of them into its WorkerSetup.
#include <limits>
#include <string_view>
#include <utility>

#include "base/nearest.h"
#include "base/split.h"
#include "cli/flag_groups.h"
#include "cli/read_value.h"

namespace lrun::launcher {
namespace {

using enum ValueKind;
using Change = EnvironmentChange::Kind;

void set_compat(const GivenValue& given, LaunchRequest& request) {
  const std::string command = choice_of(given);
  request.compat = command == "lrun" ? Compat::kLrun : Compat::kTorchrun;
  request.is_old_launch = command == "torch.distributed.launch";
}

void set_python(const GivenValue& given, LaunchRequest& request) {
  require_text(given, "the path of a Python is missing", "/path/to/python");
  request.python = setting(given, given.text);
}

void set_folder(const GivenValue& given, LaunchRequest& request) {
  if (given.text.empty()) refuse(given, "the name of a directory is missing", "leave it out to stay here");
  request.setup.folder = setting(given, given.text);
}

void change_variable(const GivenValue& given, LaunchRequest& request, Change kind, std::string name,
                     std::string value) {
  // The kernel would take a name with blanks, but people only type one by mistake.
  if (name.empty())
    refuse(given, "the name of a variable is missing", example(given, kind == Change::kUnset ? "A" : "A=1"));
  if (name.find_first_of(" \t\n\r") != std::string::npos) {
    const std::string meant(trimmed(name));
    const bool is_around_equals = kind == Change::kSet && meant.find_first_of(" \t\n\r") == std::string::npos;
    refuse(given, "the name of a variable cannot have blanks",
           is_around_equals ? "write '" + given.as_written_with(meant + "=" + std::string(trimmed(value))) + "'"
                            : "give each variable its own '--env'");
  }
  const Setting<std::string> named = setting(given, std::string());
  add_change(request.setup.environment, {kind, std::move(name), std::move(value), named.source, named.origin});
}

void set_variable(const GivenValue& given, LaunchRequest& request) {
  const std::size_t equals = given.text.find('=');
  if (equals == std::string::npos) return change_variable(given, request, Change::kPassOn, given.text, {});
  change_variable(given, request, Change::kSet, given.text.substr(0, equals), given.text.substr(equals + 1));
}

void unset_variable(const GivenValue& given, LaunchRequest& request) {
  if (const std::size_t equals = given.text.find('='); equals != std::string::npos) {
    refuse(given, "not the name of a variable", "write '" + given.as_written_with(given.text.substr(0, equals)) + "'");
  }
  change_variable(given, request, Change::kUnset, given.text, {});
}

void add_resource_limit(const GivenValue& given, LaunchRequest& request) {
  const std::size_t equals = given.text.find('=');
  const std::string name = given.text.substr(0, equals);
  const auto resource = find_resource(name);
  if (!resource) {
    const std::vector<std::string> names = resource_names();
    refuse(given, "unknown limit; allowed: " + join_words(names, ", "),
           nearest_hint(name, names, example(given, "nofile=65536")));
  }
  auto limit = equals == std::string::npos ? std::nullopt : parse_limit(*resource, given.text.substr(equals + 1));
  if (!limit) {
    refuse(given, "not a limit; allowed: NAME=SOFT or NAME=SOFT:HARD, numbers or 'unlimited', SOFT not above HARD",
           example(given, name + (name == "nofile" ? "=65536" : "=unlimited")));
  }
  const Setting<std::string> named = setting(given, std::string());
  limit->source = named.source;
  limit->origin = named.origin;
  add_limit(request.setup.limits, std::move(*limit));
}

/// '--wrap COMMAND' for all ranks, '--wrap@0,2-3 COMMAND' for some.
void add_wrapper(const GivenValue& given, LaunchRequest& request) {
  std::vector<std::string> words = command_of(given, "numactl -m 0");
  request.setup.wrappers.push_back({std::move(words), ranks_of(given), setting(given, std::string()).origin});
}

bool is_module(std::string_view name) {
  constexpr std::string_view kNoIdentifier = " \t\n\r/-";
  return !name.empty() && name.front() != '.' && name.back() != '.' && !name.ends_with(".py") &&
         name.find_first_of(kNoIdentifier) == std::string_view::npos;
}

void set_preload(const GivenValue& given, LaunchRequest& request) {
  bool are_modules = !given.text.ends_with(',');
  std::string_view rest = given.text;
  do are_modules = is_module(cut(rest, ',')) && are_modules;
  while (!rest.empty());
  if (!are_modules) {
    refuse(given, "not names of Python modules, separated by commas", example(given, "torch,torch.optim"));
  }
  request.setup.preload = setting(given, given.text);
}

void set_memory_limit(const GivenValue& given, LaunchRequest& request) {
  const std::optional<std::uint64_t> bytes = parse_bytes(given.text);
  if (!bytes) {
    refuse(given, "not a size; allowed: 0, 'unlimited', or bytes, followed by K, M, G or T", example(given, "8G"));
  }
  request.setup.memory = setting(given, MemoryLimit{bytes});
}

constexpr Flag kProgramFlags[] = {
    {.name = "module",
     .short_names = "m",
     .group = FlagGroup::kProgram,
     .details = "PROGRAM is a Python module, to be run with 'python -u -m'.",
     .torchrun_variable = true,
     .apply = set_switch<&LaunchRequest::module>},
    {.name = "run-path",
     .group = FlagGroup::kProgram,
     .details = "PROGRAM is a Python script, whatever its name is. Overrides --no-python.",
     .torchrun_variable = true,
     .apply = set_switch<&LaunchRequest::run_path>},
    {.name = "no-python",
     .group = FlagGroup::kProgram,
     .details = "Execute PROGRAM directly, even if its name ends in '.py'.",
     .torchrun_variable = true,
     .apply = set_switch<&LaunchRequest::no_python>},
    {.name = "python",
     .value = kRequired,
     .placeholder = "PATH",
     .group = FlagGroup::kProgram,
     .details = "The Python that runs Python programs: a path, or a name to be found in PATH. Overrides the variable "
                "PYTHON_EXEC.",
     .default_value = "the one beside lrun in its environment, else of the active environment, else python3 of PATH",
     .apply = set_python},
    {.name = "liblrun",
     .group = FlagGroup::kProgram,
     .details =
         "PROGRAM is a Python program that carries out --strategy itself, or starts a program that uses liblrun. "
         "Without this option Python programs are rejected with the strategies dp, ddp2 and ddp_sharded.",
     .apply = set_switch<&LaunchRequest::of_liblrun>},
    {.name = "nested",
     .group = FlagGroup::kProgram,
     .details = "Confirm that a worker of another run starts this lrun on purpose. Its workers form a world of their "
                "own. Without this option lrun warns.",
     .lrun_variable = false,
     .apply = set_switch<&LaunchRequest::nested>},
    {.name = "no-local-rank",
     .group = FlagGroup::kProgram,
     .details = "With --strategy deepspeed: do not pass '--local_rank=N' to PROGRAM.",
     .apply = set_switch<&LaunchRequest::no_local_rank>},
    {.name = "use-env",
     .group = FlagGroup::kProgram,
     .details = "With --compat torch.distributed.launch: do not pass '--local-rank=N' to PROGRAM. lrun and torchrun "
                "never do.",
     .apply = set_switch<&LaunchRequest::use_env>},
    {.name = "compat",
     .value = kRequired,
     .placeholder = "LAUNCHER",
     .group = FlagGroup::kProgram,
     .details = "Use the defaults of this launcher. 'torchrun': Python runs every PROGRAM unless --no-python is given, "
                "workers use the terminal directly, OpenMP gets one thread, and there are no verbs. A link to lrun "
                "named 'torchrun' does the same. A link named 'horovodrun' also accepts the options of horovodrun and "
                "makes '--strategy horovod' the default. 'torch.distributed.launch': as torchrun, for programs that "
                "expect their local rank as the first argument, '--local-rank=N'.",
     .choices = "lrun torchrun torch.distributed.launch",
     .noun = "launcher",
     .default_value = "lrun",
     .apply = set_compat},
    {.name = "chdir",
     .value = kRequired,
     .placeholder = "DIR",
     .group = FlagGroup::kProgram,
     .details =
         "Start the workers in this directory. PROGRAM and its arguments are relative to it; paths in lrun's own "
         "options are relative to the directory where lrun was started.",
     .apply = set_folder},
    {.name = "env",
     .value = kRequired,
     .placeholder = "NAME[=VALUE]",
     .group = FlagGroup::kProgram,
     .details = "Set this variable for the workers, as if lrun had been started with it. Without a value the variable "
                "keeps its value, even if lrun would remove it. May be repeated.",
     .lrun_variable = false,
     .repeatable = true,
     .apply = set_variable},
    {.name = "unset",
     .value = kRequired,
     .placeholder = "NAME",
     .group = FlagGroup::kProgram,
     .details = "Remove this variable from the workers' environment. May be repeated.",
     .lrun_variable = false,
     .repeatable = true,
     .apply = unset_variable},
    {.name = "rlimit",
     .value = kRequired,
     .placeholder = "NAME=SOFT[:HARD]",
     .group = FlagGroup::kProgram,
     .details = "A resource limit of the workers, see setrlimit(2): a number (for bytes also with K, M, G or T), or "
                "'unlimited'. Without HARD the hard limit is unchanged. May be repeated.",
     .choices = "as core cpu data fsize locks memlock msgqueue nice nofile nproc rss rtprio rttime sigpending stack",
     .lrun_variable = false,
     .repeatable = true,
     .apply = add_resource_limit},
    {.name = "core",
     .group = FlagGroup::kProgram,
     .details = "Write a core file when a worker is killed by a signal, as large as the hard limit allows. The verdict "
                "names the file, or the reason why there is none.",
     .apply = set_switch<&LaunchRequest::setup, &WorkerSetup::core_dumps>},
    {.name = "wrap",
     .value = kRequired,
     .placeholder = "COMMAND",
     .group = FlagGroup::kProgram,
     .details =
         "Start PROGRAM through this command, as in --wrap 'nsys profile -o out.%r'. --wrap@0 or --wrap@0,2-3 is "
         "for these ranks only and overrides --wrap. Quote words as in a shell. '%r' is the rank, '%l' the local "
         "rank, '%a' the attempt, '%h' the host, '%%' a '%'; any other '%' is unchanged. A module of Python, as in "
         "--wrap 'python3 -m cProfile -o out.%r', stands in the place of PROGRAM's Python.",
     .repeatable = true,
     .per_rank = true,
     .apply = add_wrapper},
    {.name = "preload",
     .value = kRequired,
     .placeholder = "MODULE[,MODULE...]",
     .group = FlagGroup::kProgram,
     .details =
         "Import these modules once on each node, in a fork server, and fork each worker of a Python program from it, "
         "also after a restart: a worker then starts in the time of a fork. 'auto': what the first worker of earlier "
         "runs imported. Where that is not safe, as with a module that starts threads, a warning says why, and every "
         "worker imports by itself.",
     .apply = set_preload},
    {.name = "memory-dir",
     .value = kRequired,
     .placeholder = "SIZE",
     .group = FlagGroup::kProgram,
     .details = "How much workers may keep in the folder that LRUN_MEMORY_DIR names before there is a warning. The "
                "folder is in the memory of the node. It outlives the workers, so that restarted ones find there what "
                "they saved, and is removed with the run. 0: no such folder.",
     .default_value = "a quarter of the free memory; under torchrun's name no folder",
     .lrun_variable = false,
     .apply = set_memory_limit},
    {.name = "debug-rank",
     .value = kRequired,
     .placeholder = "RANK",
     .group = FlagGroup::kProgram,
     .details = "Run this rank under a debugger on this terminal: pdb for Python, gdb for other programs, or the "
                "command of --wrap@RANK, as in --debug-rank 3 --wrap@3 'lldb --'. Ctrl-C goes to the debugger until "
                "it exits. The other ranks run as usual.",
     .lrun_variable = false,
     .apply = set_number<0, std::numeric_limits<int>::max(), &LaunchRequest::setup, &WorkerSetup::debug_rank>},
};

}  // namespace

std::span<const Flag> program_flags() { return kProgramFlags; }

}  // namespace lrun::launcher
