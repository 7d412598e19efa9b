// The command line of workers: Python in front of PROGRAM, its macros, wrappers and debugger. make_plan() calls
// worker_command(), and run starts each worker with command_of().
#include "plan/worker_command.h"

#include <algorithm>
#include <string_view>

#include "base/user_error.h"
#include "plan/debugger.h"
#include "plan/python_program.h"

namespace lrun::launcher {
namespace {

constexpr std::string_view kMacro = "local_rank";

bool begins_identifier(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || letter == '_';
}

/// The length of the identifier that `text` begins with; 0 when it begins with none.
std::size_t identifier_length(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size() &&
         (begins_identifier(text[length]) || (length > 0 && text[length] >= '0' && text[length] <= '9'))) {
    ++length;
  }
  return length;
}

/// The length of the macro that stands right after a dollar, braces included; 0 when it is something else.
std::size_t macro_length(std::string_view after_dollar) {
  const bool braced = after_dollar.starts_with('{');
  const std::string_view text = after_dollar.substr(braced ? 1 : 0);
  const std::size_t length = identifier_length(text);
  if (text.substr(0, length) != kMacro) return 0;
  if (!braced) return length;
  return text.substr(length).starts_with('}') ? length + 2 : 0;
}

/// \param every_double_dollar  '$$' is '$' everywhere; else only in front of a macro, which then stays as it is.
std::string expand(std::string_view argument, const std::string& local_rank, bool every_double_dollar) {
  std::string result;
  while (true) {
    const auto dollar = argument.find('$');
    result += argument.substr(0, dollar);
    if (dollar == std::string_view::npos) return result;
    argument.remove_prefix(dollar + 1);
    if (const std::size_t length = macro_length(argument); length > 0) {
      result += local_rank;
      argument.remove_prefix(length);
      continue;
    }
    result += '$';
    const bool doubled = argument.starts_with('$');
    if (doubled && (every_double_dollar || macro_length(argument.substr(1)) > 0)) {
      argument.remove_prefix(1);
      const std::size_t kept = argument.find('$');
      result += argument.substr(0, kept);
      argument.remove_prefix(std::min(kept, argument.size()));
    }
  }
}

}  // namespace

std::vector<std::string> worker_command(const LaunchRequest& request, const ProgramFacts& program) {
  if (request.module && request.run_path) {
    throw UserError("'--module' names a module and '--run-path' a file", "remove one of them");
  }
  if (request.module && request.no_python) {
    throw UserError("'--module' runs Python and '--no-python' forbids it", "remove one of them");
  }
  if (request.is_old_launch && request.no_python && !request.use_env) {
    throw UserError("'--no-python' without '--use-env' is refused by torch.distributed.launch", "add '--use-env'");
  }
  if (request.use_env && request.compat == Compat::kTorchrun && !request.is_old_launch) {
    throw UserError("'--use-env' is an option of torch.distributed.launch, and torchrun has none of the name",
                    "leave it out: nothing is put before the arguments of PROGRAM");
  }
  std::vector<std::string> argv;
  if (const auto python = python_of(request, program)) {
    argv = {python->program, "-u"};
    if (request.module) argv.emplace_back("-m");
  }
  const auto program_at = argv.insert(argv.end(), request.command.begin(), request.command.end());
  // Python would take a script '-x.py' for an option.
  const bool looks_like_option = argv.size() > request.command.size() && program_at->starts_with('-');
  if (looks_like_option && !request.module) program_at->insert(0, "./");
  return argv;
}

void add_local_rank(const LaunchPlan& plan, const LaunchRequest& request, std::vector<std::string>& argv) {
  const std::string number = "${" + std::string(kMacro) + "}";
  const auto first = argv.end() - static_cast<std::ptrdiff_t>(request.command.size() - 1);
  if (plan.strategy.value == Strategy::kDeepspeed) {
    if (!request.no_local_rank) argv.insert(first, "--local_rank=" + (plan.isolate_gpus ? "0" : number));
  } else if (request.is_old_launch && !request.use_env) {
    argv.insert(first, "--local-rank=" + number);
  }
}

std::vector<std::string> command_of(const LaunchPlan& plan, const NodePlan& node, const WorkerPlan& worker,
                                    int attempt) {
  std::vector<std::string> program = expand_macros(plan.argv, worker.local_rank, plan.personality);
  const Wrapper* const wrapper = wrapper_of(plan.setup.wrappers, worker.rank);
  // A wrapper for this very rank is the user's own debugger.
  const bool own_wrapper = wrapper != nullptr && !wrapper->ranks.empty();
  if (plan.setup.debug_rank.value == worker.rank && !own_wrapper) program = below_debugger(std::move(program));
  if (wrapper == nullptr) return program;
  std::vector<std::string> words = expand_wrapper(wrapper->words, {worker.rank, worker.local_rank, attempt, node.name});
  if (runs_python_module(words)) return in_place_of_python(words, program);
  words.insert(words.end(), program.begin(), program.end());
  return words;
}

std::string warn_about_shell_variables(const std::vector<std::string>& argv) {
  constexpr std::string_view kNames[] = {"RANK",        "LOCAL_RANK",  "NODE_RANK",  "WORLD_SIZE",
                                         "MASTER_ADDR", "MASTER_PORT", "GROUP_RANK", "LOCAL_WORLD_SIZE"};
  for (const std::string& argument : argv) {
    const std::string_view value = std::string_view(argument).substr(argument.find('=') + 1);
    const bool is_one = std::any_of(std::begin(kNames), std::end(kNames), [&](std::string_view name) {
      return value == "$" + std::string(name) || value == "${" + std::string(name) + "}";
    });
    if (is_one) return "no shell replaces '" + argument + "' in a worker: write \"sh -c 'exec PROGRAM ...'\" around it";
  }
  return {};
}

std::vector<std::string> expand_macros(const std::vector<std::string>& argv, int local_rank,
                                       const Personality& personality) {
  std::vector<std::string> result;
  result.reserve(argv.size());
  const std::string number = std::to_string(local_rank);
  for (const std::string& argument : argv) {
    const bool is_program = result.empty();
    result.push_back(is_program ? argument : expand(argument, number, personality.every_double_dollar));
  }
  return result;
}

}  // namespace lrun::launcher
