#include "process/process_limits.h"

#include <limits>

namespace lrun {

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

}  // namespace lrun
