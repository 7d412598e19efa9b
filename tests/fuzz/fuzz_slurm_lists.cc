// The lists of hosts and tasks that Slurm puts into a step's environment.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "cluster/slurm_lists.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto hosts = lrun::launcher::parse_slurm_hosts(text);
      hosts && (hosts->empty() || hosts->size() > lrun::launcher::kMostSlurmEntries))
    __builtin_trap();
  if (const auto counts = lrun::launcher::parse_slurm_counts(text);
      counts && (counts->empty() || counts->size() > lrun::launcher::kMostSlurmEntries))
    __builtin_trap();
  return 0;
}
