#include "runtime/collectives/common/owner_process.h"

#include <lrun/error.h>
#include <unistd.h>

namespace lrun::detail {

OwnerProcess::OwnerProcess() : pid_(::getpid()) {}

bool OwnerProcess::is_this() const noexcept { return ::getpid() == pid_; }

void OwnerProcess::require(const std::string& what) const {
  if (is_this()) return;
  throw Error(what + " belongs to process " + std::to_string(pid_) + ": process " + std::to_string(::getpid()) +
              ", which was forked from it, cannot use it");
}

}  // namespace lrun::detail
