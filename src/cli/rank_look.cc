#include "cli/rank_look.h"

#include <utility>

#include "inspect/stack_sampler.h"
#include "report/stack_text.h"

namespace lrun {

std::unique_ptr<ToolRun> look_at_ranks(EventLoop& loop, const std::vector<RankProcess>& processes, bool brief,
                                       SeenRanks seen) {
  return std::make_unique<ToolRun>(loop, stack_request(processes, brief),
                                   [seen = std::move(seen)](const ToolOutcome& outcome) {
                                     seen(stack_samples_from_json(outcome.output), outcome.errors);
                                   });
}

}  // namespace lrun
