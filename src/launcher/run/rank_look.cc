#include "run/rank_look.h"

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
  return std::make_shared<ToolRun>(loop, stack_request(processes, kind),
                                   [seen = std::move(seen)](const ToolOutcome& outcome) {
                                     seen(stack_samples_from_json(outcome.output), problem_of(outcome));
                                   });
}

}  // namespace lrun::launcher
