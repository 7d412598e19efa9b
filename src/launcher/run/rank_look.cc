#include "run/rank_look.h"

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

#include "inspect/stack_sampler.h"
#include "process/tool_run.h"
#include "report/stack_text.h"

namespace lrun::launcher {
namespace {

std::string problem_of(const ToolOutcome& outcome) {
  if (!outcome.errors.empty()) return outcome.errors;
  if (outcome.timed_out) return "it took too long";
  if (outcome.error_number != 0) return std::generic_category().message(outcome.error_number);
  return "there are too many";
}

}  // namespace

std::shared_ptr<void> look_at_ranks(EventLoop& loop, const std::vector<RankProcess>& processes, LookKind kind,
                                    SeenRanks seen) {
  // Between two attempts there is nothing to look at, and `lrun stack` refuses pids of which none is there.
  if (std::none_of(processes.begin(), processes.end(), [](const RankProcess& process) { return process.pid > 0; })) {
    std::vector<StackSample> ended;
    for (const RankProcess& process : processes) ended.push_back({.rank = process.rank});
    return std::make_shared<EventLoop::Timer>(
        loop.after(Duration::zero(), [seen = std::move(seen), ended = std::move(ended)] { seen(ended, ""); }));
  }
  return std::make_shared<ToolRun>(loop, stack_request(processes, kind),
                                   [seen = std::move(seen)](const ToolOutcome& outcome) {
                                     seen(stack_samples_from_json(outcome.output), problem_of(outcome));
                                   });
}

}  // namespace lrun::launcher
