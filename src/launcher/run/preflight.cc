// In: the plan and what prepare_start() found. Out: the reasons why workers cannot start here, before anything is
// started. Called by launch().
#include "run/preflight.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/folder.h"
#include "base/folder_entries.h"
#include "base/nearest.h"
#include "cli/flags.h"
#include "cli/verb_table.h"
#include "plan/python_program.h"
#include "remote/srun.h"
#include "report/verdict_text.h"
#include "run/run_metrics.h"
#include "run/wrong_program.h"

namespace lrun::launcher {
namespace {

/// The verb of lrun that was probably meant by a program that is not there.
std::string nearest_verb(const std::string& program, const LaunchPlan& plan) {
  if (!plan.personality.verbs || ::access(program.c_str(), F_OK) == 0) return {};
  if (program == "version") return "--version";
  if (program == "run" || program == "launch" || program == "start") return "PROGRAM";
  if (program == "list" || program == "history") return "runs";
  std::vector<std::string> verbs;
  for (const Verb& verb : verb_table()) verbs.emplace_back(verb.name);
  return nearest_word(program, verbs).value_or("");
}

/// 'pkg.train' without '-m'
std::string module_meant_by(const std::string& program) {
  const std::string path = path_of_module(program);
  const bool is_one = path != program && program.find('/') == std::string::npos && !program.ends_with(".py");
  return is_one && ::access((path + ".py").c_str(), F_OK) == 0 ? "-m " + program : std::string();
}

/// 'train_v2.py' for 'train'
std::optional<std::string> later_version(const std::string& stem, const std::vector<std::string>& names) {
  const auto found = std::find_if(names.begin(), names.end(), [&](const std::string& name) {
    return name.starts_with(stem + "_") && name.ends_with(".py");
  });
  return found == names.end() ? std::nullopt : std::optional(*found);
}

/// The file that was probably meant by a program that is not there, as it would have to be typed.
std::string nearest_file(const std::filesystem::path& program, const LaunchPlan& plan) {
  if (!plan.setup.folder.value.empty()) return {};                 // the name is one in that folder
  if (program.string().find('=') != std::string::npos) return {};  // NAME=VALUE
  if (std::string module = module_meant_by(program.string()); !module.empty()) return module;
  const std::filesystem::path folder = program.parent_path();
  const bool is_script = program.extension() == ".py";
  std::vector<std::string> names;
  std::vector<std::string> same_below;
  for (const std::filesystem::directory_entry& entry : first_entries(folder)) {
    std::error_code gone;
    const std::filesystem::path below = entry.path().filename() / program;
    if (folder.empty() && entry.is_directory(gone) && std::filesystem::is_regular_file(below, gone)) {
      same_below.push_back(below.string());
    }
    const bool may_be_it = !is_script || entry.path().extension() == ".py";
    if (may_be_it && entry.is_regular_file(gone)) names.push_back(entry.path().filename().string());
  }
  if (folder.empty() && std::find(names.begin(), names.end(), program.string()) != names.end()) {
    return "./" + program.string();
  }
  const std::string script = program.filename().string() + ".py";
  const bool has_script = std::find(names.begin(), names.end(), script) != names.end();
  std::optional<std::string> nearest = has_script ? script : nearest_word(program.filename().string(), names);
  if (!nearest) nearest = nearest_word(script, names);
  if (!nearest) nearest = later_version(program.stem().string(), names);
  if (!nearest) {
    std::sort(same_below.begin(), same_below.end());
    return join_first(same_below, 2, "' or '");
  }
  const bool as_it_is = !folder.empty() || nearest->ends_with(".py");
  return as_it_is ? (folder / *nearest).string() : "./" + *nearest;
}

/// Where a program that is not on PATH was probably meant to be.
std::filesystem::path file_of(const std::filesystem::path& program, const LaunchPlan& plan) {
  return std::filesystem::path(plan.setup.folder.value) / program;
}

/// For a file of this folder that was typed without './' and could not be executed with it.
std::string advice_about_mode(const std::string& typed, const LaunchPlan& plan) {
  const std::filesystem::path file = file_of(typed, plan);
  const bool is_name = typed.find('/') == std::string::npos;
  if (!is_name || ::access(file.c_str(), F_OK) != 0 || ::access(file.c_str(), X_OK) == 0) return {};
  return fmt::format(
      "the '{0}' of this folder is not executable; a script or program becomes so with 'chmod +x {0}', "
      "and is started with './{0}'",
      typed);
}

/// For a path of the folder that lrun was typed in, where workers start in another one.
std::string advice_about_folder(const std::string& typed, const LaunchPlan& plan) {
  const Setting<std::string>& folder = plan.setup.folder;
  if (folder.source != Source::kFlag || typed.starts_with('/') || ::access(typed.c_str(), F_OK) != 0) return {};
  return fmt::format("it is looked for in '{}', because of '{}': write '$PWD/{}'", folder.value, folder.origin, typed);
}

/// '--grace 10 min': the number has become a value, and its unit the program.
std::string advice_about_unit(const std::string& typed, const LaunchPlan& /*plan*/) {
  constexpr std::array<std::string_view, 10> kUnits{"s",    "sec",     "seconds", "m",     "min",
                                                    "mins", "minutes", "h",       "hours", "d"};
  if (std::find(kUnits.begin(), kUnits.end(), typed) == kUnits.end()) return {};
  return fmt::format("a number and its unit are one word, as in '--timeout 10{}'", typed.substr(0, 1));
}

bool is_missing(const std::filesystem::path& path, const LaunchPlan& plan) {
  return ::access(file_of(path, plan).c_str(), F_OK) != 0 && errno == ENOENT;
}

/// For a program in the folder above the one that lrun was typed in. Other nodes show it, too, so it names this folder.
std::string advice_about_folder_above(const std::string& typed, const LaunchPlan& plan) {
  std::error_code gone;
  const bool is_name = typed.find('/') == std::string::npos && plan.setup.folder.value.empty();
  if (!is_name || !is_missing(typed, plan) || !std::filesystem::is_regular_file("../" + typed, gone)) return {};
  return fmt::format("'{0}' is in the folder above '{1}': start lrun there, or name '../{0}'", typed,
                     std::filesystem::current_path(gone).string());
}

/// For a path with a folder that is not there, and for a variable in single quotes.
std::string advice_about_path(const std::string& typed, const LaunchPlan& plan) {
  if (typed.find('$') != std::string::npos) return "a shell replaces '$' only outside of single quotes";
  std::filesystem::path missing = std::filesystem::path(typed).parent_path();
  if (missing.empty() || !is_missing(missing, plan)) return {};
  for (std::filesystem::path above = missing.parent_path(); !above.empty() && is_missing(above, plan);
       above = missing.parent_path()) {
    missing = above;
  }
  return fmt::format("there is no folder '{}'", missing.string());
}

/// The word behind the one that was typed as PROGRAM; empty: none.
std::string next_word(const std::string& typed, const LaunchPlan& plan) {
  const auto word = std::find(plan.argv.begin(), plan.argv.end(), typed);
  return word == plan.argv.end() || word + 1 == plan.argv.end() ? std::string() : *(word + 1);
}

/// An option without its dashes: 'devices=2', 'devices 2', '4 train.py', 'x4 train.py'.
std::string advice_about_dashes(const std::string& typed, const LaunchPlan& plan) {
  const std::string next = next_word(typed, plan);
  const std::string number = typed.substr(typed.starts_with('x') ? 1 : 0);
  const bool is_number = !number.empty() && number.find_first_not_of("0123456789") == std::string::npos;
  if (is_number && !next.empty()) return did_you_mean("-n " + number);
  const std::size_t equals = std::min(typed.find('='), typed.size());
  const Flag* const flag = find_long_flag("--" + typed.substr(0, equals));
  const bool is_setting = flag != nullptr && flag->action == FlagAction::kSetting && in_this_version(*flag);
  if (!is_setting || is_python(typed)) return {};
  const bool is_apart = equals == typed.size() && flag->value == ValueKind::kRequired;
  if (is_apart && next.empty()) return {};
  return did_you_mean("--" + typed + (is_apart ? " " + next : std::string()));
}

/// The value of '--env NAME VALUE', which lrun takes for PROGRAM.
std::string advice_about_value(const std::string& typed, const LaunchPlan& plan) {
  if (plan.setup.environment.empty() || next_word(typed, plan).empty()) return {};
  const EnvironmentChange& last = plan.setup.environment.back();
  const bool is_there = last.kind != EnvironmentChange::Kind::kPassOn || std::getenv(last.name.c_str()) != nullptr;
  return is_there ? std::string() : fmt::format("write '{}={}'", as_written(last), typed);
}

/// For a word too many in front of a script of this folder: 'launch train.py', '4 train.py'.
std::string advice_about_word_before_script(const std::string& typed, const LaunchPlan& plan) {
  if (typed.find_first_of("./=") != std::string::npos || ::access(file_of(typed, plan).c_str(), F_OK) == 0) return {};
  const auto script = std::find_if(plan.argv.begin() + 1, plan.argv.end(), [&](const std::string& word) {
    return word.ends_with(".py") && ::access(file_of(word, plan).c_str(), F_OK) == 0;
  });
  return script == plan.argv.end()
             ? std::string()
             : fmt::format("leave '{}' out if '{}' is the program: 'lrun [options] {}'", typed, *script, *script);
}

/// A name with blanks that was typed without quotes, and is there with them: 'my dir/train.py'.
std::string advice_about_blanks(const std::string& typed, const LaunchPlan& plan) {
  constexpr std::size_t kMostLetters = 4096;
  auto word = std::find(plan.argv.begin(), plan.argv.end(), typed);
  if (word == plan.argv.end()) return {};
  std::string name = typed;
  while (++word != plan.argv.end() && name.size() < kMostLetters) {
    name += " " + *word;
    if (::access(file_of(name, plan).c_str(), F_OK) == 0) return fmt::format("put the name in quotes: \"{}\"", name);
  }
  return {};
}

/// '-H a b train.py'
std::string advice_about_host(const LaunchRequest& request, const LaunchPlan& plan) {
  const std::vector<std::string>& words = request.command;
  const std::string& typed = words.front();
  if (!request.hosts.given() || typed.find('/') != std::string::npos || words.size() == 1) return {};
  if (nearest_word(typed, {"python", "python3"}) || !hint_about_failed_launcher({typed}).empty()) return {};
  const auto is_there = [&](const std::string& word) { return ::access(file_of(word, plan).c_str(), F_OK) == 0; };
  if (is_there(typed) || !is_there(words[1])) return {};
  return fmt::format("where '{}' is a host, a list is one word: '{},{}'", typed, as_written(request.hosts), typed);
}

/// The Python that was to run PROGRAM cannot be executed.
std::string advice_about_python(const LaunchPlan& plan) {
  if (!plan.python || !plan.python->is_named || plan.python->program.find(' ') != std::string::npos) return {};
  return fmt::format("'{}' names it: '--python PATH' takes the path of a Python, or its name on PATH",
                     plan.python->reason);
}

/// \param is_executed  the word itself was to be executed, and not given to Python
std::string advice_for(const LaunchRequest& request, const LaunchPlan& plan, bool is_executed) {
  const std::string& typed = request.command.front();
  if (std::string advice = advice_about_host(request, plan); !advice.empty()) return advice;
  if (std::string advice = advice_about(typed, file_of(typed, plan)); !advice.empty()) return advice;
  using Advice = std::string (*)(const std::string& typed, const LaunchPlan& plan);
  constexpr Advice kOfAll[] = {advice_about_folder, advice_about_folder_above, advice_about_unit, advice_about_path,
                               advice_about_blanks};
  constexpr Advice kOfExecuted[] = {advice_about_value, advice_about_dashes, advice_about_mode,
                                    advice_about_word_before_script};
  for (const Advice about : kOfAll) {
    if (std::string advice = about(typed, plan); !advice.empty()) return advice;
  }
  for (const Advice about : kOfExecuted) {
    if (std::string advice = is_executed ? about(typed, plan) : std::string(); !advice.empty()) return advice;
  }
  return is_executed ? std::string() : advice_about_python(plan);
}

std::string folder_of_workers(const LaunchPlan& plan) {
  std::error_code gone;
  return std::filesystem::weakly_canonical(file_of(".", plan), gone).string();
}

FailureRecord record_of_problem(const ProgramProblem& problem) {
  FailureRecord record;
  record.ending = FailureRecord::Ending::kExecFailed;
  record.value = problem.error_number;
  record.cause = Cause::kExecFailed;
  return record;
}

}  // namespace

std::optional<ProgramProblem> find_program_problem(const PreparedStart& start, const LaunchPlan& plan,
                                                   const LaunchRequest& request) {
  if (!start.runs_program) return std::nullopt;  // each worker has a wrapper
  if (start.executable.error_number != 0) return ProgramProblem{start.executable.error_number, false};
  const std::string& program = request.command.front();
  const bool is_python_script = plan.argv.front() != program && !request.module;
  if (!is_python_script || ::access(start.from_here(program).c_str(), F_OK) == 0) return std::nullopt;
  return ProgramProblem{errno, true};
}

Verdict verdict_of(const ProgramProblem& problem) {
  return judge({RunEnd::Kind::kStartFailed}, {record_of_problem(problem)});
}

UserError program_error(const ProgramProblem& problem, const LaunchRequest& request, const LaunchPlan& plan) {
  const std::string& typed = request.command.front();
  const std::string& program = problem.given_to_python ? typed : plan.argv.front();
  const StartProblem text =
      start_problem(record_of_problem(problem), {.program = program,
                                                 .advice = advice_for(request, plan, program == typed),
                                                 .nearest_verb = nearest_verb(program, plan),
                                                 .nearest_file = nearest_file(program, plan),
                                                 .script = program != typed ? typed : std::string(),
                                                 .is_in_folder = ::access(file_of(typed, plan).c_str(), F_OK) == 0,
                                                 .folder = folder_of_workers(plan),
                                                 .given_to_python = problem.given_to_python});
  return UserError(text.what, text.hint);
}

void check_folder_of_srun(const LaunchPlan& plan, const Environment& environment) {
  const std::string folder = environment.get(kSrunFolder).value_or("");
  if (folder.empty() || plan.setup.folder.value.starts_with('/') || ::access(folder.c_str(), X_OK) == 0) return;
  throw UserError(fmt::format("cannot enter '{}', where lrun was started: {}", folder, std::strerror(errno)),
                  "start it in a folder that all nodes have, or give workers one with '--chdir DIR'");
}

void check_log_folder(const LaunchPlan& plan) {
  const std::string& folder = plan.log_dir.value;
  if (folder.empty() || folder == "/dev/null") return;
  std::error_code error;
  try {
    (void)Folder::make(folder);
    if (::access(folder.c_str(), W_OK | X_OK) != 0) error = std::error_code(errno, std::generic_category());
  } catch (const std::system_error& refusal) {
    error = refusal.code();
  }
  if (!error) return;
  throw UserError(fmt::format("cannot write logs in '{}': {}", folder, error.message()),
                  "name a folder you may write to, or '/dev/null' for no log files");
}

void check_metrics_file(const LaunchPlan& plan) {
  const std::string file = metrics_target(plan).file;
  if (file.empty()) return;
  if (const auto problem = problem_of_metrics_file(file)) throw *problem;
}

void check_notice_file(const LaunchPlan& plan, MessageSink& sink) {
  const std::filesystem::path file = plan.notice.value.file;
  if (file.empty()) return;
  struct stat facts {};
  const bool is_there = ::stat(file.c_str(), &facts) == 0;
  const bool is_folder = !file.has_filename() || (is_there && S_ISDIR(facts.st_mode));
  if (is_folder || (is_there && !S_ISREG(facts.st_mode))) {
    throw UserError(fmt::format("a notice cannot be looked for at '{}': it is {}", file.string(),
                                is_folder ? "a folder" : "no regular file"),
                    is_folder
                        ? fmt::format("name a file in it that will be made, as in '{}'", (file / "going").string())
                        : "name a file that will be made when this machine is about to go");
  }
  if (!is_there && ::access(file.parent_path().c_str(), F_OK) != 0) {
    sink.warn(fmt::format("--notice: no folder '{}' is here yet, where '{}' would be made", file.parent_path().string(),
                          file.filename().string()));
  }
}

}  // namespace lrun::launcher
