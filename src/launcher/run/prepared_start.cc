// In: the plan and lrun's environment. Out: the program, folder, environment and limits that workers start with, or a
// UserError about what is missing. Called by launch().
#include "run/prepared_start.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/folder.h"
#include "base/user_error.h"
#include "plan/worker_command.h"

namespace lrun::launcher {
namespace {

std::string absolute_folder(const Setting<std::string>& folder) {
  if (!folder.given()) return {};
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(folder.value, error);
  if (!error && !std::filesystem::is_directory(path, error) && !error)
    error = std::error_code(ENOTDIR, std::generic_category());
  if (!error && ::access(path.c_str(), X_OK) != 0) error = std::error_code(errno, std::generic_category());
  if (error) {
    throw UserError(
        fmt::format("'{} {}': workers cannot start there: {}", folder.origin, folder.value, error.message()),
        "name a directory that is there");
  }
  return path.lexically_normal().string();
}

std::vector<ProcessLimit> allowed_limits(const std::vector<ResourceLimit>& asked) {
  std::vector<ProcessLimit> limits;
  for (const ResourceLimit& limit : asked) {
    limits.push_back(ProcessLimit::of(limit.resource, limit.soft, limit.hard));
    if (limits.back().is_allowed()) continue;
    struct rlimit now {};
    ::getrlimit(static_cast<__rlimit_resource_t>(limit.resource), &now);
    throw UserError(
        fmt::format("'{} {}': the hard limit is {} and may not be raised", limit.origin, text_of(limit), now.rlim_max),
        fmt::format("at most '{}={}'; a hard limit is raised before lrun starts", resource_name(limit.resource),
                    now.rlim_max));
  }
  return limits;
}

/// As large as the hard limit allows, unless --rlimit says how large.
void allow_core_dumps(std::vector<ProcessLimit>& limits) {
  for (const ProcessLimit& limit : limits) {
    if (limit.resource == RLIMIT_CORE) return;
  }
  struct rlimit now {};
  ::getrlimit(RLIMIT_CORE, &now);
  if (now.rlim_max == 0) {
    throw UserError("'--core': the hard limit of core files is 0", "raise it: 'ulimit -Hc unlimited' as root");
  }
  limits.push_back(ProcessLimit::of(RLIMIT_CORE, now.rlim_max, now.rlim_max));
}

/// A wrapper's name may hold macros, so that each worker has its own.
void find_wrappers(const LaunchPlan& plan, PreparedStart& start) {
  const NodePlan& node = plan.nodes.front();
  start.runs_program = false;
  for (const WorkerPlan& worker : node.workers) {
    const std::string name = command_of(plan, node, worker, 0).front();
    if (name == plan.argv.front()) {
      start.runs_program = true;
      continue;
    }
    const ProgramPath found = find_program(name, start.environment.get("PATH").value_or(""), start.folder);
    if (found.error_number != 0) {
      const Wrapper* const wrapper = wrapper_of(plan.setup.wrappers, worker.rank);
      const std::string& origin = wrapper != nullptr ? wrapper->origin : plan.setup.debug_rank.origin;
      throw UserError(fmt::format("'{}': '{}' cannot be executed: {}", origin, name, std::strerror(found.error_number)),
                      "name a program that is there, by its path or on PATH");
    }
    start.wrapper_paths[name] = found.path;
  }
}

void need_terminal(const Setting<int>& debug_rank) {
  if (::isatty(STDIN_FILENO) == 1) return;
  throw UserError(fmt::format("'{}' needs a terminal, and standard input is not one", debug_rank.origin),
                  "start lrun from a shell; 'ssh -t' and 'docker run -it' make a terminal");
}

/// The kernel stops a shell's background job that reads the terminal. It cannot stop workers, which have sessions of
/// their own: rank 0 would take what the user types to the shell.
void refuse_a_shells_terminal() {
  const pid_t foreground = ::isatty(STDIN_FILENO) == 1 ? ::tcgetpgrp(STDIN_FILENO) : -1;
  if (foreground <= 0 || foreground == ::getpgrp()) return;
  throw UserError("'--stdin' would read a terminal that another job uses: lrun runs in the background",
                  "start lrun in the foreground, or give it a file: '< FILE'");
}

/// Others had no part in it when it was looked at (problem_of_private_folder()).
void make_cache_folder(const std::filesystem::path& path) {
  if (Folder::open(path.parent_path()).inner(path.filename().native())) return;
  throw UserError(fmt::format("cannot make the folder '{}' for caches: {}", path.string(),
                              errno == EPERM ? "another user made it" : std::strerror(errno)),
                  "set 'TMPDIR' to a folder of your own on this node");
}

}  // namespace

std::string PreparedStart::from_here(const std::string& path) const {
  return folder.empty() || path.starts_with('/') ? path : folder + "/" + path;
}

PreparedStart prepare_start(const LaunchPlan& plan, const Environment& environment) {
  PreparedStart start;
  start.folder = absolute_folder(plan.setup.folder);
  start.environment = changed(environment, plan.setup.environment);
  if (!start.folder.empty()) start.environment.set("PWD", start.folder);
  start.limits = allowed_limits(plan.setup.limits);
  if (plan.setup.core_dumps) allow_core_dumps(start.limits);
  start.defaults = SpawnDefaults::of_this_process();
  start.executable = find_program(plan.argv.front(), start.environment.get("PATH").value_or(""), start.folder);
  find_wrappers(plan, start);
  if (!plan.cache_folder.empty()) make_cache_folder(plan.cache_folder);
  if (plan.setup.debug_rank.given()) need_terminal(plan.setup.debug_rank);
  if (plan.standard_input) refuse_a_shells_terminal();
  return start;
}

}  // namespace lrun::launcher
