#include "process/exit_status.h"

#include <fmt/format.h>

#include "base/signal_names.h"
#include "process/exit_codes.h"

namespace lrun::inline core {

ExitStatus ExitStatus::from_siginfo(const siginfo_t& info) {
  ExitStatus status;
  status.kind = info.si_code == CLD_EXITED ? Kind::kExited : Kind::kSignaled;
  status.value = info.si_status;
  status.core_dumped = info.si_code == CLD_DUMPED;
  return status;
}

int ExitStatus::shell_code() const {
  if (kind == Kind::kUnknown) return 1;
  return kind == Kind::kExited ? value : exit_code_of_signal(value);
}

std::string ExitStatus::text() const {
  if (kind == Kind::kUnknown) return "ended, and only its tracer knows how";
  if (kind == Kind::kExited) return fmt::format("exited with code {}", value);
  std::string detail(signal_meaning(value));
  if (core_dumped) detail += detail.empty() ? "core dumped" : ", core dumped";
  const std::string name = signal_name(value);
  return detail.empty() ? fmt::format("died of {}", name) : fmt::format("died of {} ({})", name, detail);
}

}  // namespace lrun::inline core
