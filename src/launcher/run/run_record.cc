#include "run/run_record.h"

#include <fmt/format.h>

#include <system_error>
#include <utility>

#include "base/replaced_file.h"
#include "plan/show_plan.h"
#include "process/process_title.h"
#include "report/result_json.h"

namespace lrun::launcher {
namespace {

/// Pages that people pass on show it: values that --env sets may be secrets.
std::string plan_text_to_keep(LaunchPlan plan, const Environment& environment) {
  for (EnvironmentChange& change : plan.setup.environment) {
    if (change.kind == EnvironmentChange::Kind::kSet) change.value = "...";
  }
  return show_plan_text(plan, environment);
}

}  // namespace

RunRecord::RunRecord(EventLoop& loop, const LaunchPlan& plan, const Environment& environment, MessageSink& sink,
                     const std::string& part)
    : loop_(loop), environment_(environment), sink_(sink), run_id_(plan.run_id), folders_(plan, environment, part) {}

void RunRecord::make_folders(bool has_to_log) {
  const bool is_removed = folders_.is_run_removed();
  if (is_removed) {
    control_.reset();  // its socket is in there
    folders_.forget_run();
  }
  if (const std::string refusal = folders_.make(has_to_log); !refusal.empty()) sink_.warn(refusal);
  if (!is_removed) return;
  has_started_ = false;
  open();
}

void RunRecord::open() {
  const Folder* const folder = folders_.run();
  if (folder == nullptr) return;
  try {
    events_ = EventLog(*folder);
    events_.hold_back();
    control_.emplace(loop_, *folder, answer_);
    folders_.begin();
  } catch (const std::system_error& error) {
    sink_.warn(fmt::format("no record of this run will be kept: {}", error.what()));
  }
}

void RunRecord::attempt_started(const LaunchPlan& plan, const Attempt& attempt) {
  if (std::exchange(has_started_, true)) {
    events_.attempt_started(attempt.membership(), attempt.workers(), attempt.files().path());
  } else {
    events_.run_started(plan, attempt.membership(), attempt.workers(), attempt.files().path(),
                        remembered_command_line(), plan_text_to_keep(plan, environment_));
  }
}

void RunRecord::head_started(const LaunchPlan& plan) {
  events_.run_started(plan, {}, {}, {}, remembered_command_line(), "");
}

void RunRecord::prune_others(bool at_once) const {
  folders_.prune_others(kRunsKept, at_once ? kRunsKept : kRunsTolerated);
}

void RunRecord::close() {
  control_.reset();
  folders_.remove_unused_logs();
}

void RunRecord::write_result(const Verdict& verdict, const std::vector<FailureRecord>& records, const std::string& text,
                             const std::string& hint) {
  events_.run_ended(verdict);
  const Folder* const folder = folders_.run();
  if (folder == nullptr) return;
  const int error = replace_file(*folder, "result.json", result_json(run_id_, verdict, records, text, hint), 0600);
  if (error != 0) sink_.warn(fmt::format("no result.json: {}", std::generic_category().message(error)));
}

}  // namespace lrun::launcher
