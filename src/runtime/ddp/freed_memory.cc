#include "runtime/ddp/freed_memory.h"

#include <malloc.h>

#include <algorithm>
#include <array>
#include <cstdlib>

namespace lrun::detail {

void keep_freed_memory() {
#ifdef __GLIBC__
  constexpr std::array kOfTheUser{"MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES"};
  if (std::ranges::any_of(kOfTheUser, [](const char* name) { return std::getenv(name) != nullptr; })) return;
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);  // what glibc itself goes up to; setting one of them makes the other fixed
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
}

}  // namespace lrun::detail
