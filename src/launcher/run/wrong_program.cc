// In: a command that cannot be what its author meant. Out: a text about what it is. Called before workers start, and
// for the hint where they cannot start.
#include "run/wrong_program.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <system_error>

#include "base/folder_entries.h"
#include "base/nearest.h"
#include "base/small_file.h"
#include "base/split.h"
#include "base/user_error.h"
#include "plan/python_program.h"
#include "report/status_text.h"

namespace lrun::launcher {
namespace {

struct SourceFile {
  std::string_view ending;
  std::string_view language;
  std::string_view compiler;
};
constexpr std::array kSourceFiles{SourceFile{".c", "C", "cc"}, SourceFile{".cc", "C++", "c++"},
                                  SourceFile{".cpp", "C++", "c++"}, SourceFile{".cxx", "C++", "c++"},
                                  SourceFile{".cu", "CUDA", "nvcc"}};

constexpr std::array<std::string_view, 3> kLaunchers{"torchrun", "torch.distributed.run", "torch.distributed.launch"};

/// Launchers that may be started by lrun for good reasons, but not where they are missing.
constexpr std::array<std::string_view, 7> kOtherLaunchers{
    "mpirun", "mpiexec", "srun", "accelerate", "accelerate.commands.launch", "deepspeed", "horovodrun"};

/// Words that a shell knows and no file has.
constexpr std::array<std::string_view, 7> kWordsOfShells{"source", ".", "export", "alias", "ulimit", "conda", "module"};

/// A PROGRAM that is nowhere, because it is a verb of another tool, or a launcher that lrun is in place of.
struct OtherWord {
  std::string_view theirs;
  std::string_view hint;
};
constexpr std::string_view kToEnd = "Ctrl-C ends a run, and so does 'kill PID' with the pid that 'lrun status' shows";
constexpr std::string_view kNotHere = "it is not on PATH here: often 'module load' puts it there";
constexpr std::string_view kNoInit = "nothing is to be set up: 'lrun [options] PROGRAM' starts a run";
constexpr OtherWord kOtherWords[] = {
    {"stop", kToEnd},
    {"kill", kToEnd},
    {"cancel", kToEnd},
    {"ps", "'lrun status' shows what runs"},
    {"watch", "'lrun status --watch' shows what runs"},
    {"diff", "'lrun report RUN' shows one run"},
    {"test", "a program of this folder is './test'"},
    {"man", "'lrun --help' describes every option, and 'man lrun' is the manual"},
    {"submit", "'sbatch' submits a batch script; lrun starts PROGRAM at once"},
    {"apply", "it is a verb of kubectl; lrun starts PROGRAM"},
    {"sbatch", "'sbatch' starts lrun: write the line 'lrun [options] PROGRAM' into the batch script"},
    {"exec", "leave it out: lrun starts PROGRAM itself, and the shell's exec stands before lrun"},
    {"debug", "leave it out: '--debug-rank 0' runs rank 0 in a debugger, and '--verbose' shows more of lrun"},
    {"check", "'lrun doctor' checks this machine, and '--dry-run' a command line"},
    {"init", kNoInit},
    {"install", kNoInit},
    {"setup", kNoInit},
    {"singularity", kNotHere},
    {"apptainer", kNotHere},
    {"docker", kNotHere},
    {"podman", kNotHere},
    {"wait", "'lrun status --watch' shows runs until they end"},
    {"get", "it is a verb of kubectl; 'lrun status' shows what runs"},
    {"scale", "'-n' is the number of workers, and '--num-nodes MIN:MAX' lets nodes come and go"},
    {"jupyter", "a notebook starts its ranks itself: see launch() in docs/launch_from_code.md"},
    {"horovodrun", "write 'lrun --strategy horovod' in its place, with its options"},
    {"top", "'lrun status --watch' shows what runs"},
    {"ls", "'lrun runs' lists the runs"},
    {"tail", "'lrun logs --follow' shows what a run writes"},
    {"attach", "'lrun logs --follow' shows what a run writes"},
    {"show", "'lrun report' shows how a run went"},
    {"why", "did you mean 'lrun explain'?"},
    {"diagnose", "did you mean 'lrun explain'?"},
    {"info", "'lrun report' shows how a run went, and 'lrun doctor' what is wrong here"},
    {"goodput", "'lrun report --goodput' says what the time of a job was spent on"},
    {"rerun", "did you mean 'lrun again'?"},
    {"retry", "did you mean 'lrun again'?"},
    {"restart", "did you mean 'lrun again'?"},
    {"resume", "'lrun again' runs the last command line again; going on from a checkpoint is the program's part"},
    {"config", "did you mean 'lrun --print-config'?"},
    {"deepspeed", "write 'lrun --strategy deepspeed' in its place, with its options"},
    {"accelerate", "leave 'accelerate launch' out, and give its options to lrun"},
    {"fit", "PROGRAM comes before its own words: 'lrun [options] PROGRAM fit ...'"},
    {"clean", "nothing is to be cleaned: lrun removes old runs itself, and 'lrun runs' shows those that are kept"},
    {"cd", "to start workers in another folder, write '--chdir DIR' before PROGRAM"},
};

std::string_view hint_about_word(const std::string& word) {
  const auto* const known = std::find_if(std::begin(kOtherWords), std::end(kOtherWords),
                                         [&](const OtherWord& one) { return one.theirs == word; });
  return known == std::end(kOtherWords) ? std::string_view() : known->hint;
}

bool is_any_of(const auto& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// '—devices' and '–devices': what word processors make of two dashes.
bool begins_with_long_dash(const std::string& word) { return word.starts_with("\u2014") || word.starts_with("\u2013"); }

/// A command line in quotes.
std::string advice_about_line(const std::string& line) {
  if (line.find_first_of("|&;<>$`") != std::string::npos) {
    return "it is a line for a shell: write 'sh -c' before it";
  }
  return fmt::format("the whole command is one word: leave out the quotes, as in 'lrun [options] {}'", line);
}

bool is_launcher(const std::string& word) {
  const std::string name = std::filesystem::path(word).filename().string();
  return std::find(kLaunchers.begin(), kLaunchers.end(), name) != kLaunchers.end();
}

/// The words behind Python and its own options; none: it is not Python.
std::vector<std::string> words_for_python(const std::vector<std::string>& command) {
  if (command.empty() || !is_python(command.front())) return {};
  return parts_of_python(command).program;
}

/// PROGRAM, or the module that Python runs: 'python -u -m torch.distributed.run'. Empty: no command.
std::string launcher_word(const std::vector<std::string>& command) {
  const std::vector<std::string> program = words_for_python(command);
  if (program.size() > 1 && program.front() == "-m") return program[1];
  return command.empty() ? std::string() : command.front();
}

/// 'x86-64', for messages; else the number of the ELF header.
std::string name_of_machine(unsigned machine) {
  switch (machine) {
    case EM_X86_64:
      return "x86-64";
    case EM_AARCH64:
      return "arm64";
    case EM_386:
      return "32-bit x86";
    case EM_ARM:
      return "32-bit ARM";
    case EM_PPC64:
      return "POWER";
    case EM_RISCV:
      return "RISC-V";
    default:
      return fmt::format("processors with the number {} of ELF", machine);
  }
}

/// The processors that an ELF file is for, which 32-bit and 64-bit files name at the same place; EM_NONE: it is no such
/// file.
unsigned machine_of(const std::filesystem::path& file) {
  Elf64_Ehdr header{};
  constexpr std::size_t kBytes = offsetof(Elf64_Ehdr, e_machine) + sizeof header.e_machine;
  const std::string head = read_file_head(file, kBytes);
  if (head.size() < kBytes) return EM_NONE;
  std::memcpy(&header, head.data(), kBytes);
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 ? header.e_machine : EM_NONE;
}

/// '127.0.0.1'
bool is_address(const std::string& word) {
  return std::count(word.begin(), word.end(), '.') == 3 && word.front() != '.' && word.back() != '.' &&
         word.find("..") == std::string::npos && word.find_first_not_of("0123456789.") == std::string::npos;
}

/// 'beta:2'
bool is_host_with_workers(const std::string& word) {
  const std::size_t colon = word.find(':');
  if (colon == 0 || colon == std::string::npos || colon + 1 == word.size()) return false;
  return word.find('/') == std::string::npos && word.find_first_not_of("0123456789", colon + 1) == std::string::npos;
}

std::string advice_about_machine(const std::filesystem::path& file) {
  const unsigned machine = machine_of(file);
  const unsigned own = machine_of("/proc/self/exe");
  if (machine == EM_NONE || own == EM_NONE || machine == own) return {};
  return fmt::format("it was built for {}, and this machine is {}: build it here", name_of_machine(machine),
                     name_of_machine(own));
}

/// A folder as PROGRAM, which may be a package of Python that can be run.
std::string advice_about_package(const std::string& program, const std::filesystem::path& folder) {
  std::error_code error;
  if (std::filesystem::exists(folder / "__main__.py", error)) {
    std::string name(trimmed(program.starts_with("./") ? program.substr(2) : program, "/"));
    std::replace(name.begin(), name.end(), '/', '.');
    if (!program.starts_with('/') && !name.starts_with('.')) return did_you_mean("-m " + name);
  }
  const bool is_name = program.find('/') == std::string::npos;
  if (!is_name || !std::filesystem::is_directory(folder, error)) return {};
  return fmt::format("'{}' is a folder: name the program in it", program);
}

/// One that is there, and no program.
std::string advice_about_file(const std::string& program, const std::filesystem::path& file) {
  const std::filesystem::path path(program);
  const std::string ending = path.extension().string();
  const std::string stem = path.stem().string();
  if (ending == ".sbatch" || ending == ".slurm") {
    return fmt::format("it is a batch script of Slurm: 'sbatch {}' submits it", program);
  }
  if (ending == ".exe") return "it is a program of Windows: build it for Linux";
  constexpr std::array<std::string_view, 10> kData{".md",   ".txt", ".yaml", ".yml", ".toml",
                                                   ".json", ".csv", ".pt",   ".pth", ".ckpt"};
  if (is_any_of(kData, ending)) return "it is no program: name the one that reads it";
  if (path.filename() == "activate") {
    return fmt::format("'source {}' stands in the shell before lrun, or '--python' names the Python beside it",
                       program);
  }
  if (program == "Makefile") return "it is for make: 'make' builds the program that it is about";
  if (ending == ".ipynb") {
    return fmt::format("it is a notebook: 'jupyter nbconvert --to script {}' writes '{}.py', which lrun can start",
                       program, stem);
  }
  const auto* const source = std::find_if(kSourceFiles.begin(), kSourceFiles.end(),
                                          [&ending](const SourceFile& one) { return one.ending == ending; });
  if (source != kSourceFiles.end()) {
    return fmt::format("it is a source file of {}: compile it, as in '{} -o {} {}', and start './{}'", source->language,
                       source->compiler, stem, program, stem);
  }
  return advice_about_machine(file);
}

/// The Python files of a folder: the names that are typed, or those of their modules.
std::vector<std::string> python_files_of(const std::filesystem::path& folder, bool with_ending) {
  std::vector<std::string> names;
  for (const std::filesystem::directory_entry& entry : first_entries(folder)) {
    const std::filesystem::path& file = entry.path();
    if (file.extension() == ".py") names.push_back((with_ending ? file.filename() : file.stem()).string());
  }
  return names;
}

/// The script that Python runs, as it was typed; empty: it runs none.
std::string script_in(const std::vector<std::string>& command) {
  const std::vector<std::string> program = words_for_python(command);
  return program.empty() || !program.front().ends_with(".py") ? std::string() : program.front();
}

/// 'package.module' of 'package/module.py'
std::string module_of(const std::string& script) {
  std::string name = std::filesystem::path(script).lexically_normal().replace_extension().string();
  std::replace(name.begin(), name.end(), '/', '.');
  return name;
}

std::string hint_to_replace(const std::string& launcher) {
  return fmt::format("lrun takes its place: leave '{}' out, and give its options to lrun", launcher);
}

void check_module(const std::string& module, const std::filesystem::path& folder) {
  constexpr std::string_view kEnding = ".py";
  const bool is_path = module.find('/') != std::string::npos;
  const bool has_ending = module.ends_with(kEnding);
  std::string name = module.substr(0, module.size() - (has_ending ? kEnding.size() : 0));
  std::replace(name.begin(), name.end(), '/', '.');
  std::error_code error;
  const bool is_there = std::filesystem::exists(folder / (path_of_module(name) + ".py"), error);
  if (!is_path && !(has_ending && is_there)) return;
  const bool is_in_package = is_there && name.find('.', 1) != std::string::npos && !name.starts_with('.');
  throw UserError(fmt::format("'-m {}': that is a file, and '-m' takes the name of a module", module),
                  is_in_package ? fmt::format("write its name with dots: '-m {}'", name)
                                : fmt::format("leave '-m' out: 'lrun [options] {}'", module));
}

void check_script(const LaunchRequest& request, const LaunchPlan& plan) {
  constexpr std::array<std::string_view, 4> kShells{"bash", "sh", "zsh", "dash"};
  const std::string& program = request.command.front();
  const bool has_input = request.standard_input || plan.personality.standard_input != Personality::Stdin::kNull;
  if (has_input || request.command.size() > 1 || !(is_python(program) || is_any_of(kShells, program))) return;
  throw UserError(fmt::format("'{}' has no script to run, and workers have no input to read one from", program),
                  fmt::format("name it: 'lrun {} SCRIPT'; with '--stdin', rank 0 reads it from lrun's input", program));
}

/// 'python -m pdb train.py' and 'lrun -m pdb train.py', whose workers would read the end of the input and exit with 0.
void check_debugger(const LaunchRequest& request, const LaunchPlan& plan) {
  const std::vector<std::string>& command = request.command;
  const bool has_input = request.standard_input || plan.setup.debug_rank.given() ||
                         plan.personality.standard_input != Personality::Stdin::kNull;
  const bool in_python = command.size() > 2 && is_python(command[0]) && command[1] == "-m" && command[2] == "pdb";
  if (has_input || !(in_python || (request.module && command.front() == "pdb"))) return;
  const std::size_t behind = in_python ? 3 : 1;
  if (command.size() > behind && command[behind] == "-c") return;  // 'pdb -c continue train.py'
  throw UserError("'pdb' needs a terminal, and workers have no input",
                  "leave '-m pdb' out, and write '--debug-rank 0': it runs rank 0 in pdb on this terminal");
}

void check_verb(const std::vector<std::string>& command) {
  constexpr std::array<std::string_view, 10> kAlone{"ps",   "top",  "ls",  "tail", "watch",
                                                    "diff", "test", "man", "init", "install"};
  constexpr std::array<std::string_view, 2> kAlways{"kill", "sbatch"};
  const std::string& word = command.front();
  const bool is_alone = command.size() == 1 || (word == "tail" && command.size() == 2 && command[1].starts_with('-'));
  if (!is_any_of(kAlways, word) && !(is_alone && is_any_of(kAlone, word))) return;
  throw UserError(fmt::format("'{}' is no verb of lrun", word),
                  fmt::format("{}; '/usr/bin/{}' starts the program of that name", hint_about_word(word), word));
}

}  // namespace

std::string advice_about(const std::string& program, const std::filesystem::path& file) {
  std::error_code error;
  const bool is_there = std::filesystem::exists(file, error);
  const bool is_script = std::filesystem::exists(file.string() + ".py", error);  // 'fit' for 'fit.py'
  if (!is_there && !is_script && !hint_about_word(program).empty()) return std::string(hint_about_word(program));
  if (!is_there && (is_launcher(program) || is_any_of(kOtherLaunchers, program))) {
    return hint_to_replace(program);
  }
  if (std::string advice = advice_about_package(program, file); !advice.empty()) return advice;
  if (!is_there && (is_host_with_workers(program) || is_address(program))) {
    return fmt::format("a list is one word, with commas and no blanks: '-H HOST,{}'", program);
  }
  if (program == "-") return "lrun runs a file, as in 'lrun train.py'; with '--stdin' rank 0 gets lrun's input";
  if (!is_there && program.starts_with('-')) {
    return "PROGRAM stands behind '--', and its options behind its name; those of lrun stand before '--'";
  }
  if (trimmed(program).empty()) return "PROGRAM is a blank: remove the one behind '\\' at the end of a line";
  if (!is_there && program.find(' ') != std::string::npos) return advice_about_line(program);
  if (std::string pasted = hint_about_pasted_blank(program); !is_there && !pasted.empty()) return pasted;
  if (!is_there && begins_with_long_dash(program)) {
    const std::string name = program.substr(std::min(program.find_first_not_of("-\u2013\u2014"), program.size()));
    return fmt::format("options begin with plain dashes: write '{}{}'", name.size() == 1 ? "-" : "--", name);
  }
  if (!is_there && program.find("\u201c") != std::string::npos) {
    return "curly quotes are part of a name: write plain ones, or none";
  }
  if (!is_there && program.find("://") != std::string::npos) return "lrun runs local files: download it before";
  if (!is_there && program.starts_with("~/")) return "the shell does not replace a '~' in quotes: leave out the quotes";
  if (!is_there && program.starts_with('/') && program.find(":/") != std::string::npos) {
    return "lrun mounts nothing: '-v' is '--verbose', and what follows it is PROGRAM";
  }
  if (!is_there && is_any_of(kWordsOfShells, program)) {
    return fmt::format("'{}' is a word of the shell: type it there, before lrun", program);
  }
  return is_there ? advice_about_file(program, file) : std::string();
}

void check_command(const LaunchRequest& request, const LaunchPlan& plan) {
  check_debugger(request, plan);
  if (request.module) {
    check_module(request.command.front(), plan.setup.folder.value);
    return;
  }
  check_script(request, plan);
  if (plan.personality.verbs && plan.world_size == 1) check_verb(request.command);
}

std::string hint_about_tool(const FailureRecord& record, const std::vector<std::string>& argv) {
  constexpr int kNotExecutable = 126;
  constexpr int kNotFound = 127;
  const bool starts_nothing =
      record.ending == FailureRecord::Ending::kExited && (record.value == kNotExecutable || record.value == kNotFound);
  const bool is_script = record.error.find(": command not found") != std::string::npos;
  if (!starts_nothing || is_script || argv.empty() || is_python(argv.front())) return {};
  if (argv.front().find('/') != std::string::npos) return {};  // a script of the user's own
  const auto first = std::find_if(argv.begin() + 1, argv.end(), [](const std::string& word) {
    return !word.empty() && word.front() != '-' && word.find_first_not_of("0123456789") != std::string::npos;
  });
  if (first == argv.end() || !first->ends_with(".py")) return {};
  return fmt::format("'{}' does not start '{}' with Python: write 'python3' between them", argv.front(), *first);
}

std::string hint_about_folder(const FailureRecord& record, const std::filesystem::path& folder,
                              const std::vector<std::string>& argv) {
  constexpr std::string_view kNoModule = "ModuleNotFoundError: No module named '";
  constexpr std::string_view kNoFile = "FileNotFoundError: [Errno 2] No such file or directory: '";
  constexpr std::string_view kOfPackage = "ImportError: attempted relative import with no known parent package";
  const std::string script = script_in(argv);
  const std::filesystem::path below = std::filesystem::path(script).parent_path();
  if (below.empty() || below.is_absolute()) return {};
  if (record.error == kOfPackage) {
    return fmt::format("it is part of a package: write '-m {}' in the place of '{}'", module_of(script), script);
  }
  const bool is_module = record.error.starts_with(kNoModule);
  if (!record.error.ends_with('\'') || !(is_module || record.error.starts_with(kNoFile))) return {};
  const std::size_t begin = is_module ? kNoModule.size() : kNoFile.size();
  const std::string name = record.error.substr(begin, record.error.size() - 1 - begin);
  std::error_code failed;
  const auto is_there = [&](const std::filesystem::path& path) {
    return std::filesystem::is_regular_file(path, failed);
  };
  if (is_module) {
    const std::filesystem::path path = folder / path_of_module(name);
    if (!is_there(path / "__init__.py") && !is_there(path.string() + ".py")) return {};
    return fmt::format("Python looks for it in '{}', beside the script: write '--env PYTHONPATH=.:$PYTHONPATH'",
                       below.string());
  }
  if (name.starts_with('/') || !is_there(folder / below / name)) return {};
  return fmt::format("it is in '{}': start lrun there, as relative paths begin where lrun was started", below.string());
}

std::string hint_about_misspelt_name(const FailureRecord& record, const std::filesystem::path& folder) {
  constexpr std::string_view kScript = "can't open file '";
  constexpr std::string_view kModule = "No module named ";
  const std::string_view error = record.error;
  const std::size_t script = error.find(kScript);  // behind 'python3: ' in most versions
  const bool is_script = script == 0 || (script != std::string_view::npos && error.substr(0, script).ends_with(": "));
  if (!is_script && !error.starts_with(kModule)) return {};
  std::string_view rest = error.substr(is_script ? script + kScript.size() : kModule.size());
  const std::string name(cut(rest, '\''));
  const std::filesystem::path missing = folder / (is_script ? name : path_of_module(name));
  const std::vector<std::string> files = python_files_of(missing.parent_path(), is_script);
  const auto nearest = nearest_word(missing.filename().string(), files);
  if (!nearest) return {};
  return did_you_mean(is_script ? *nearest : "-m " + name.substr(0, name.rfind('.') + 1) + *nearest);  // npos + 1 is 0
}

std::string hint_about_failed_launcher(const std::vector<std::string>& argv) {
  const std::string word = launcher_word(argv);
  if (!is_launcher(word) && !is_any_of(kOtherLaunchers, word)) return {};
  return hint_to_replace(
      command_text({argv.begin(), std::find(argv.begin(), argv.end(), word) + 1}, std::string::npos));
}

std::string warn_of_launcher(const std::vector<std::string>& command, int world_size) {
  const std::string word = launcher_word(command);
  if (!is_launcher(word) && !(world_size > 1 && is_any_of(kOtherLaunchers, word))) return {};
  return fmt::format("each worker starts '{}', which starts ranks of its own; {}", word,
                     hint_about_failed_launcher(command));
}

}  // namespace lrun::launcher
