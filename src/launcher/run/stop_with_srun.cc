#include "run/stop_with_srun.h"

#include <signal.h>

#include <utility>

namespace lrun::launcher {
namespace {

constexpr Duration kToObeySrun(2000);  // as for launchers of a head over ssh that is gone

void signal_guard(const Guard& guard, int number) {
  if (!guard.has_died()) ::kill(guard.pid(), number);
}

}  // namespace

StopWithSrun::StopWithSrun(EventLoop& loop, const Environment& environment, const Guard& guard, MessageSink& sink)
    : loop_(loop), guard_(guard), sink_(sink) {
  std::optional<SrunPlace> place = srun_place(environment);
  if (place) watch_.emplace(loop_, std::move(*place), [this] { end(); });
}

void StopWithSrun::end() {
  sink_.error("srun, through which this launcher was started, is gone: nothing goes on without it");
  kill_ = loop_.after(kToObeySrun, [this] { signal_guard(guard_, SIGKILL); });
  signal_guard(guard_, SIGHUP);
}

}  // namespace lrun::launcher
