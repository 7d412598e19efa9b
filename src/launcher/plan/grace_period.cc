#include "plan/grace_period.h"

#include <string>

#include "base/user_error.h"

namespace lrun::launcher {

Setting<Duration> choose_grace_period(const LaunchRequest& request, const Environment& environment) {
  constexpr const char* kVariable = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT";
  const auto text = environment.get(kVariable);
  if (request.grace.source >= Source::kEnvironment || !text || text->empty()) return request.grace;
  if (const auto grace = parse_duration(*text)) return {*grace, Source::kEnvironment, kVariable};
  throw UserError("'" + std::string(kVariable) + "=" + *text + "' is not a time",
                  "give a number of seconds, such as '30'");
}

}  // namespace lrun::launcher
