#include "process/exit_status.h"

#include <fmt/format.h>

#include "base/signal_names.h"

namespace lrun {

ExitStatus ExitStatus::from_siginfo(const siginfo_t& info) {
  ExitStatus status;
  status.kind = info.si_code == CLD_EXITED ? Kind::kExited : Kind::kSignaled;
  status.value = info.si_status;
  status.core_dumped = info.si_code == CLD_DUMPED;
  return status;
}

std::string ExitStatus::in_words() const {
  if (kind == Kind::kExited) return fmt::format("exited with code {}", value);
  std::string detail(signal_meaning(value));
  if (core_dumped) detail += detail.empty() ? "core dumped" : ", core dumped";
  const std::string name = signal_name(value);
  return detail.empty() ? fmt::format("died of {}", name) : fmt::format("died of {} ({})", name, detail);
}

}  // namespace lrun
