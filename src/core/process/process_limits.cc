#include "process/process_limits.h"

#include <algorithm>
#include <limits>

namespace lrun::inline core {

ProcessLimit ProcessLimit::of(int resource, rlim_t soft, std::optional<rlim_t> hard) {
  ProcessLimit limit{resource, {}};
  ::getrlimit(static_cast<__rlimit_resource_t>(resource), &limit.value);
  limit.value.rlim_cur = soft;
  limit.value.rlim_max = hard.value_or(std::max(soft, limit.value.rlim_max));
  return limit;
}

/// Tries it, since privileges have too many sources: raises the limit here, and sets it back.
bool ProcessLimit::is_allowed() const {
  const auto which = static_cast<__rlimit_resource_t>(resource);
  struct rlimit before {};
  ::getrlimit(which, &before);
  if (value.rlim_max <= before.rlim_max) return true;
  const struct rlimit raised { before.rlim_cur, value.rlim_max };
  if (::setrlimit(which, &raised) != 0) return false;
  ::setrlimit(which, &before);
  return true;
}

FileLimit FileLimit::raise_to_hard() {
  FileLimit limit;
  ::getrlimit(RLIMIT_NOFILE, &limit.original_);
  struct rlimit raised = limit.original_;
  raised.rlim_cur = raised.rlim_max;
  const bool done = ::setrlimit(RLIMIT_NOFILE, &raised) == 0;
  const rlim_t soft = done ? raised.rlim_cur : limit.original_.rlim_cur;
  limit.available_ = soft == RLIM_INFINITY ? std::numeric_limits<std::size_t>::max() : static_cast<std::size_t>(soft);
  return limit;
}

}  // namespace lrun::inline core
