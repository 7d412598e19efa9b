// Searches a program, or a script with the modules that it imports, for a word: the name of an option before
// warn_about_misplaced_option() blames the user, 'mp.spawn' before run_request() warns of it.
#include "cli/program_words.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <vector>

#include "base/small_file.h"
#include "base/split.h"
#include "plan/python_program.h"

namespace lrun::launcher {
namespace {

constexpr std::size_t kMostBytes = std::size_t{64} << 20U;
constexpr std::size_t kMostFiles = 100;

/// Libraries that make options out of classes and functions, which may be in an installed package.
constexpr std::array<std::string_view, 10> kOptionMakers{"HfArgumentParser",
                                                         "LightningCLI",
                                                         "add_argparse_args",
                                                         "hydra",
                                                         "absl",
                                                         "fire",
                                                         "jsonargparse",
                                                         "simple_parsing",
                                                         "tyro",
                                                         "typer"};

bool continues_word(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9') ||
         letter == '_';
}

bool has_word(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    const bool begins = at == 0 || !continues_word(text[at - 1]);
    if (begins && (end == text.size() || !continues_word(text[end]))) return true;
  }
  return false;
}

/// Removes the next word from an import statement and returns it; empty at the end of the statement.
std::string_view take_word(std::string_view& rest) {
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t,("), rest.size()));
  const std::string_view word = rest.substr(0, rest.find_first_of(" \t,()#;"));
  rest.remove_prefix(word.size());
  return word;
}

/// The script among the arguments, where PROGRAM is Python itself.
ProgramText text_for_python(const std::vector<std::string>& command) {
  const std::vector<std::string> program = parts_of_python(command).program;
  if (program.empty() || program.front().starts_with('-')) return {};
  return {program.front(), true};
}

/// Whether the text names what launchers give to their ranks.
bool takes_rank(std::string_view text) {
  constexpr std::array<std::string_view, 4> kOfLaunchers{"RANK", "LOCAL_RANK", "WORLD_SIZE",
                                                         "is_torchelastic_launched"};
  return std::any_of(kOfLaunchers.begin(), kOfLaunchers.end(),
                     [&text](std::string_view word) { return has_word(text, word); });
}

using Path = std::filesystem::path;

/// The files that may have the modules of a script.
class ImportedFiles {
 public:
  explicit ImportedFiles(const Path& script) : folder_(script.parent_path()), files_{script} {}

  [[nodiscard]] const std::vector<Path>& files() const { return files_; }

  /// Adds the files that the text of `file` imports.
  void add(std::string_view text, const Path& file) {
    for (const std::string& line : split_lines(text)) {
      std::string_view rest = trimmed(line);
      const std::string_view keyword = take_word(rest);
      if (keyword == "import") {
        add_modules(rest, [&](std::string_view module) { return place_of(module, file); });
      } else if (keyword == "from") {
        const Path package = place_of(take_word(rest), file);
        add_module(package);
        if (take_word(rest) == "import") add_modules(rest, [&](std::string_view name) { return package / name; });
      }
    }
  }

 private:
  /// Leading dots count directories upwards from that of `file`. A name without them begins in the script's directory.
  [[nodiscard]] Path place_of(std::string_view module, const Path& file) const {
    const std::size_t dots = std::min(module.find_first_not_of('.'), module.size());
    Path place = dots == 0 ? folder_ : file.parent_path();
    for (std::size_t i = 1; i < dots; ++i) place /= "..";
    std::string_view rest = module.substr(dots);
    while (!rest.empty()) place /= cut(rest, '.');
    return place;
  }

  void add_modules(std::string_view names, const auto& place) {
    for (std::string_view name = take_word(names); !name.empty(); name = take_word(names)) add_module(place(name));
  }

  void add_module(const Path& place) {
    add_file(Path(place) += ".py");
    add_file(place / "__init__.py");
  }

  void add_file(const Path& file) {
    if (std::find(files_.begin(), files_.end(), file) == files_.end()) files_.push_back(file);
  }

  Path folder_;
  std::vector<Path> files_;
};

}  // namespace

ReadProgram program_reader(const std::string& folder) {
  return [folder](const std::string& path) { return read_small_file(Path(folder) / path, kMostBytes); };
}

ProgramText text_of(const LaunchRequest& request, const ProgramFacts& program) {
  const std::string& name = request.command.front();
  if (request.module) {
    std::string path = name;
    std::replace(path.begin(), path.end(), '.', '/');
    return {path + ".py", true};
  }
  if (is_given_to_python(request, program)) return {name, true};
  if (is_python(name)) return text_for_python(request.command);
  const bool is_path = name.find('/') != std::string::npos;
  if (!is_path || (!program.first_line.empty() && !names_python(program.first_line))) return {};
  return {name, !program.first_line.empty()};
}

bool lacks_word(const std::string& file, std::string_view word, const ReadProgram& read) {
  const std::optional<std::string> text = read(file);
  return text && !has_word(*text, word);
}

bool script_lacks_word(const std::string& script, std::string_view word, const ReadProgram& read) {
  ImportedFiles imported(script);
  std::size_t found = 0;
  for (std::size_t i = 0; i < imported.files().size(); ++i) {
    const Path file = imported.files()[i];
    const std::optional<std::string> text = read(file.string());
    if (!text) continue;
    const auto has = [&text](std::string_view other) { return has_word(*text, other); };
    if (has(word) || std::any_of(kOptionMakers.begin(), kOptionMakers.end(), has)) return false;
    if (++found > kMostFiles) return false;
    imported.add(*text, file);
  }
  return found > 0;
}

bool spawns_ranks(const std::string& text) {
  const std::vector<std::string> lines = split_lines(text);
  const auto spawns = [](const std::string& line) {
    return !trimmed(line).starts_with('#') &&
           (line.find("mp.spawn(") != std::string::npos || line.find("multiprocessing.spawn(") != std::string::npos);
  };
  return std::any_of(lines.begin(), lines.end(), spawns) && !takes_rank(text);
}

bool fixes_rank(const std::string& text) {
  constexpr std::string_view kCall = "init_process_group(";
  constexpr std::size_t kMostArguments = 1000;
  const std::size_t at = text.find(kCall);
  if (at == std::string::npos || text.find(kCall, at + 1) != std::string::npos || takes_rank(text)) return false;
  std::string arguments;  // without blanks
  int depth = 1;
  for (std::size_t i = at + kCall.size(); i < text.size() && arguments.size() < kMostArguments; ++i) {
    depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    if (depth == 0) break;
    if (text[i] != ' ' && text[i] != '\n') arguments += text[i];
  }
  for (std::string_view rest = arguments; !rest.empty();) {
    const std::string_view argument = cut(rest, ',');
    const std::string_view rank = argument.starts_with("rank=") ? argument.substr(5) : std::string_view();
    const bool is_number = !rank.empty() && rank.find_first_not_of("0123456789") == std::string_view::npos;
    if (is_number || argument == "world_size=1") return true;
  }
  return false;
}

}  // namespace lrun::launcher
