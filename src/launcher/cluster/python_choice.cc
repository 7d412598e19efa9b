// In: environment of workers, how lrun was called, a look at files. Out: the Python that runs Python programs, with the
// reason. Called before planning, by run_request() and `lrun doctor`.
#include "cluster/python_choice.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include "base/split.h"
#include "base/whole_number.h"
#include "process/process_title.h"
#include "process/program_path.h"

namespace lrun::launcher {
namespace {

/// A Python that was found. `folder` is the one of its program, PREFIX/bin.
struct FoundPython {
  std::string folder;
  std::string name;
  std::string reason;

  [[nodiscard]] std::string path() const { return folder.empty() ? name : folder + "/" + name; }
};

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

std::string absolute(const std::string& path, const std::string& folder) {
  return path.starts_with('/') ? path : (std::filesystem::path(folder) / path).lexically_normal().string();
}

std::vector<std::string> folders_of_path(const Environment& environment) {
  const std::string path = environment.get("PATH").value_or("/bin:/usr/bin");
  std::vector<std::string> folders;
  for (std::string_view rest = path; !rest.empty();) folders.emplace_back(cut(rest, ':'));
  return folders;
}

/// 11 of 'python3.11'; empty for any other name.
std::optional<int> minor_version(std::string_view name) {
  constexpr std::string_view kBegin = "python3.";
  return name.starts_with(kBegin) ? natural_number(name.substr(kBegin.size())) : std::nullopt;
}

/// \param name  in site-packages, where 'numpy-2.1.0.dist-info' stands for a package
bool is_package_of_user(std::string_view name) {
  constexpr std::array<std::string_view, 4> kOfAnyTool{"lrun", "pip", "setuptools", "wheel"};
  return name.ends_with(".dist-info") &&
         std::ranges::find(kOfAnyTool, name.substr(0, name.find('-'))) == kOfAnyTool.end();
}

class PythonSearch {
 public:
  PythonSearch(const Environment& environment, const OwnCall& call, const FileLook& files)
      : environment_(environment), call_(call), files_(files), path_(folders_of_path(environment)) {}

  /// The environment's folder of programs in which lrun lies, as it was typed or as a file; empty: in none.
  [[nodiscard]] std::string own_folder() const {
    for (const std::string& program : {typed_path(), call_.file}) {
      if (!program.empty() && is_environment(folder_of(program))) return folder_of(program);
    }
    return {};
  }

  /// An environment that was made for one program.
  [[nodiscard]] bool is_of_tool(const std::string& folder) const {
    const std::string prefix = folder_of(folder);
    if (files_.exists(prefix + "/uv-receipt.toml") || files_.exists(prefix + "/pipx_metadata.json")) return true;
    const std::string above = folder_of(prefix);  // uvx: the folder 'archive-v0' of uv's cache
    return above.substr(above.rfind('/') + 1).starts_with("archive-v");
  }

  /// Whether somebody added packages to it: it holds more than lrun, and what pipx and uv put beside any tool.
  [[nodiscard]] bool has_other_packages(const std::string& folder) const {
    const std::string libraries = folder_of(folder) + "/lib/";
    for (const std::string& name : files_.names(libraries)) {
      if (!name.starts_with("python3")) continue;
      const std::vector<std::string> packages = files_.names(libraries + name + "/site-packages");
      if (std::ranges::any_of(packages, is_package_of_user)) return true;
    }
    return false;
  }

  [[nodiscard]] std::optional<FoundPython> in_environment(const std::string& folder, const std::string& reason) const {
    for (const char* const name : {"python", "python3"}) {
      if (files_.runs(folder + "/" + name)) return FoundPython{folder, name, reason};
    }
    return std::nullopt;
  }

  /// Of a virtual environment and one of conda, the one that was activated last is first in PATH.
  [[nodiscard]] std::vector<FoundPython> active() const {
    std::vector<FoundPython> found;
    for (const char* const name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
      const std::string prefix = environment_.get(name).value_or("");
      if (prefix.empty()) continue;
      if (const auto python = in_environment(prefix + "/bin", name)) found.push_back(*python);
    }
    std::stable_sort(found.begin(), found.end(), [this](const FoundPython& a, const FoundPython& b) {
      return place_in_path(a) < place_in_path(b);
    });
    return found;
  }

  [[nodiscard]] std::optional<FoundPython> on_path(const std::string& but) const {
    if (auto found = by_name(path_, "python3", but)) return found;
    if (auto found = newest(but)) return found;
    return by_name(path_, "python", but);
  }

  /// \param program  a path, or a name for PATH
  [[nodiscard]] bool is_there(const std::string& program) const {
    return program.find('/') == std::string::npos ? by_name(path_, program, {}).has_value() : files_.runs(program);
  }

  /// The name finds the same file for workers.
  [[nodiscard]] bool is_first(const FoundPython& found) const {
    return by_name(path_, found.name, {})->folder == found.folder;
  }

  [[nodiscard]] bool is_environment(const std::string& folder) const {
    return is_venv(folder) || files_.exists(folder_of(folder) + "/conda-meta");
  }

  /// Unlike an environment of conda, it is meant to have a Python.
  [[nodiscard]] bool is_venv(const std::string& folder) const {
    return files_.exists(folder_of(folder) + "/pyvenv.cfg");
  }

  /// Conda's own environment is active in every shell of many users, who did not choose it.
  [[nodiscard]] bool is_base_of_conda(const FoundPython& found) const {
    return found.reason == "CONDA_PREFIX" && files_.exists(folder_of(found.folder) + "/condabin");
  }

  /// The programs of pyenv and its like find out themselves which Python is meant.
  [[nodiscard]] bool are_same(const FoundPython& a, const FoundPython& b) const {
    return a.folder.ends_with("/shims") || b.folder.ends_with("/shims") ||
           files_.real(a.folder) == files_.real(b.folder);
  }

 private:
  [[nodiscard]] std::string typed_path() const {
    if (call_.typed.find('/') != std::string::npos) return absolute(call_.typed, call_.folder);
    const auto found = by_name(path_, call_.typed, {});
    const std::string path = found ? absolute(found->path(), call_.folder) : std::string();
    return files_.real(path) == call_.file ? path : std::string();  // workers may have another PATH than lrun
  }

  [[nodiscard]] bool is_left_out(const std::string& folder, const std::string& but) const {
    return !but.empty() && files_.real(folder) == files_.real(but);
  }

  /// \param but  a folder that is left out; empty: none
  [[nodiscard]] std::optional<FoundPython> by_name(const std::vector<std::string>& folders, const std::string& name,
                                                   const std::string& but) const {
    for (const std::string& folder : folders) {
      const FoundPython found{folder, name, "PATH"};
      if (files_.runs(absolute(found.path(), call_.folder)) && !is_left_out(folder, but)) return found;
    }
    return std::nullopt;
  }

  /// The highest 'python3.N' of the first folder that has one.
  [[nodiscard]] std::optional<FoundPython> newest(const std::string& but) const {
    for (const std::string& folder : path_) {
      int best = -1;
      for (const std::string& name : files_.names(absolute(folder, call_.folder))) {
        const auto minor = minor_version(name);
        if (minor && *minor > best && by_name({folder}, name, but)) best = *minor;
      }
      if (best >= 0) return FoundPython{folder, fmt::format("python3.{}", best), "PATH"};
    }
    return std::nullopt;
  }

  [[nodiscard]] std::size_t place_in_path(const FoundPython& found) const {
    const auto place = std::find_if(path_.begin(), path_.end(), [&](const std::string& folder) {
      return files_.real(folder) == files_.real(found.folder);
    });
    return static_cast<std::size_t>(place - path_.begin());
  }

  const Environment& environment_;
  const OwnCall& call_;
  const FileLook& files_;
  std::vector<std::string> path_;
};

std::string named_text(const FoundPython& python) { return fmt::format("'{}' ({})", python.path(), python.reason); }

PythonChoice choice_of(const FoundPython& python, const std::optional<FoundPython>& other) {
  PythonChoice choice{python.path(), python.path(), python.reason};
  if (other) {
    choice.warning = fmt::format("Python programs run in {}, not in {}; '--python PATH' names one of them",
                                 named_text(python), named_text(*other));
  }
  return choice;
}

/// About a virtual environment that was moved or removed, or that another host has.
std::string problem_of(const char* name, const std::string& prefix, const PythonSearch& search) {
  if (prefix.empty() || search.in_environment(prefix + "/bin", {})) return {};
  return fmt::format("{} is '{}', which has no Python; '--python PATH' names one", name, prefix);
}

/// The Python that may have been meant instead of one beside lrun. A path that was typed says what is meant, unless
/// another environment is active.
std::optional<FoundPython> other_than_beside(const FoundPython& beside, const std::vector<FoundPython>& active,
                                             const OwnCall& call, const PythonSearch& search) {
  for (const FoundPython& python : active) {
    if (search.are_same(python, beside)) return std::nullopt;
    if (!search.is_base_of_conda(python)) return python;
  }
  if (!active.empty() || call.typed.find('/') != std::string::npos) return std::nullopt;
  const auto first = search.on_path({});
  const bool differs = first && search.is_environment(first->folder) && !search.are_same(*first, beside);
  return differs ? first : std::nullopt;
}

std::vector<std::string> names_in_folder(const std::string& folder) {
  std::vector<std::string> found;
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    found.push_back(entry->path().filename().string());
  }
  return found;
}

std::string without_links(const std::string& path) {
  std::error_code error;
  std::string found = std::filesystem::canonical(path, error).string();
  return error ? path : found;
}

}  // namespace

PythonChoice choose_python(const NamedPython& asked, const Environment& environment, const OwnCall& call,
                           const FileLook& files) {
  const PythonSearch search(environment, call, files);
  const NamedPython by_variable{environment.get("PYTHON_EXEC").value_or(""), "PYTHON_EXEC"};
  const NamedPython by_module{environment.get("LRUN_MODULE_PYTHON").value_or(""), "python -m lrun"};
  for (const NamedPython& named : {asked, by_variable, by_module}) {
    if (named.program.empty()) continue;
    const bool is_path = named.program.find('/') != std::string::npos;
    const std::string program = is_path ? absolute(named.program, call.folder) : named.program;
    return {program, is_path ? program : std::string(), named.origin, true, search.is_there(program)};
  }
  const std::string own = search.own_folder();
  const std::optional<FoundPython> beside = own.empty() ? std::nullopt : search.in_environment(own, "beside lrun");
  const bool is_of_tool = !own.empty() && search.is_of_tool(own);
  const std::vector<FoundPython> active = search.active();
  if (beside && !is_of_tool) return choice_of(*beside, other_than_beside(*beside, active, call, search));
  const std::optional<FoundPython> first = search.on_path(is_of_tool ? own : std::string());
  if (!active.empty()) {
    const bool differs = first && !search.are_same(*first, active.front());
    return choice_of(active.front(), differs ? first : std::nullopt);
  }
  if (beside && search.has_other_packages(own)) return choice_of(*beside, std::nullopt);
  PythonChoice choice;
  choice.warning = problem_of("VIRTUAL_ENV", environment.get("VIRTUAL_ENV").value_or(""), search);
  if (choice.warning.empty() && !is_of_tool && search.is_venv(own)) {
    choice.warning = problem_of("lrun's own environment", folder_of(own), search);
  }
  choice.is_there = first.has_value();
  if (!first) return choice;
  choice.path = absolute(first->path(), call.folder);
  choice.program = search.is_first(*first) ? first->name : choice.path;
  return choice;
}

PythonChoice choose_python_here(const NamedPython& asked, const Environment& environment) {
  return choose_python(asked, environment, OwnCall::of_this_process(), FileLook::of_this_host());
}

FileLook FileLook::of_this_host() {
  return {.exists = [](const std::string& path) { return ::access(path.c_str(), F_OK) == 0; },
          .runs = [](const std::string& path) { return find_program(path, {}).error_number == 0; },
          .names = names_in_folder,
          .real = without_links};
}

OwnCall OwnCall::of_this_process() {
  const std::vector<std::string>& line = remembered_command_line();
  std::error_code error;
  return {line.empty() ? std::string() : line.front(), std::filesystem::read_symlink("/proc/self/exe", error).string(),
          std::filesystem::current_path(error).string()};
}

}  // namespace lrun::launcher
