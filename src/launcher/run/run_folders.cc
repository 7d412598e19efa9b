#include "run/run_folders.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "cluster/slurm.h"

namespace lrun::launcher {
namespace {

std::string refusal_text(const char* what, const std::system_error& error, const char* named_by) {
  return fmt::format("{} of this run will be kept: {}; {} names another place", what, error.what(), named_by);
}

/// In a deleted folder a relative name means nothing: it stays as it is and cannot be made.
std::filesystem::path absolute_where_it_can_be(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return error ? path : absolute;
}

}  // namespace

std::filesystem::path folder_of_run(const LaunchPlan& plan, const Environment& environment) {
  return absolute_where_it_can_be(state_folder(environment)) / plan.run_id;
}

std::string names_of_run(const LaunchPlan& plan, const Environment& environment) {
  std::string names = plan.run_name;
  for (const std::string& job : slurm_job_names(environment)) names += "\n" + job;
  return names;
}

RunFolders::RunFolders(const LaunchPlan& plan, const Environment& environment, const std::string& part)
    : path_(folder_of_run(plan, environment)),
      part_(part.empty() ? part_of(plan) : part),
      names_(names_of_run(plan, environment)),
      log_option_(plan.log_dir.value.empty() ? "TMPDIR" : "'--log-dir'"),
      logs_(plan, environment) {}

bool RunFolders::is_run_removed() const { return run_ && run_->folder().is_removed(); }

std::string RunFolders::make(bool has_to_log) {
  std::string refusal;
  try {
    if (!run_) run_.emplace(path_, part_, names_);
  } catch (const std::system_error& error) {
    if (has_to_log && logs_.is_run_directory()) throw;
    refusal = refusal_text(logs_.is_run_directory() ? "no logs and no record" : "no record", error, "LRUN_STATE");
  }
  try {
    logs_.make(run());
  } catch (const std::system_error& error) {
    if (has_to_log) throw;
    if (refusal.empty()) refusal = refusal_text("no logs", error, log_option_);
  }
  return refusal.empty() || std::exchange(told_, true) ? std::string() : refusal;
}

void RunFolders::begin() {
  if (run_) run_->begin();
}

void RunFolders::prune_others(std::size_t kept, std::size_t tolerated) const {
  if (run_) run_->prune_others(kept, tolerated);
}

void RunFolders::remove() {
  logs_.remove_when_unused();
  if (run_) run_->remove();
}

}  // namespace lrun::launcher
