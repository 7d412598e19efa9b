#include "run/stop_with_srun.h"

#include <signal.h>

#include <utility>

#include "report/diagnostics.h"

namespace lrun::launcher {
namespace {

constexpr Duration kToObeySrun(2000);  // as for launchers of a head over ssh that is gone

void signal_guard(const Guard& guard, int number) {
  if (!guard.has_died()) ::kill(guard.pid(), number);
}

}  // namespace

StopWithSrun::StopWithSrun(EventLoop& loop, const Environment& environment, const Guard& guard)
    : loop_(loop), guard_(guard) {
  std::optional<SrunPlace> place = srun_place(environment);
  if (place) watch_.emplace(loop_, std::move(*place), [this] { end(); });
}

void StopWithSrun::end() {
  say(Severity::kError, "srun, through which this launcher was started, is gone: nothing goes on without it");
  kill_ = loop_.after(kToObeySrun, [this] { signal_guard(guard_, SIGKILL); });
  signal_guard(guard_, SIGHUP);
}

}  // namespace lrun::launcher
