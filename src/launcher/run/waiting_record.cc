#include "run/waiting_record.h"

#include <system_error>
#include <utility>

#include "base/replaced_file.h"
#include "process/process_title.h"
#include "report/result_json.h"
#include "run/run_folders.h"

namespace lrun::launcher {

WaitingRecord::WaitingRecord(EventLoop& loop, const std::filesystem::path& run, const std::string& part,
                             const std::string& names, SteadyTime began, ControlSocket::Answer answer)
    : directory_(run, part, names) {
  try {
    control_.emplace(loop, directory_.folder(), std::move(answer));
    events_ = EventLog(directory_.folder());
    events_.hold_back(began);
  } catch (const std::system_error&) {
    directory_.remove();
    throw;
  }
}

WaitingRecord::~WaitingRecord() {
  control_.reset();
  if (!is_kept_) directory_.remove();
}

void WaitingRecord::keep(const LaunchPlan& plan, const Verdict& verdict, const std::string& text) {
  control_.reset();
  events_.run_started(plan, {}, {}, {}, remembered_command_line(), "");
  events_.run_ended(verdict);
  (void)replace_file(directory_.folder(), "result.json", result_json(plan.run_id, verdict, {}, text, hint_in(text)),
                     0600);
  try {
    directory_.begin();
    is_kept_ = true;
  } catch (const std::system_error&) {  // NOLINT(bugprone-empty-catch): what was printed is all that tells of it
  }
  directory_.prune_others(kRunsKept, kRunsTolerated);
}

}  // namespace lrun::launcher
