#include "verdict/machine_evidence.h"

#include <csignal>
#include <cstdint>

#include "process/storage_space.h"

namespace lrun::inline core {

void add_machine_evidence(const FailureRecord& record, MemoryWatch& memory, EndFacts& facts) {
  if (record.stopped_by_lrun()) return;
  if (record.ended_by(SIGKILL)) {
    const MemoryKills kills = memory.take();
    facts.memory_kills = kills.count;
    facts.memory_kills_are_ours = kills.in_cgroup;
    facts.memory_limit_bytes = kills.limit_bytes;
  }
  if (record.ended_by(SIGBUS)) {
    const StorageSpace space = storage_space("/dev/shm").value_or(StorageSpace{});
    facts.shared_memory_full = space.full();
    facts.shared_memory_bytes = space.total_bytes;
  }
}

void add_full_folder(const FailureRecord& record, const std::string& folder, EndFacts& facts) {
  constexpr std::uint64_t kBlock = 4096;  // full means that not even one block is left
  if (record.stopped_by_lrun() || record.success() || record.ending != FailureRecord::Ending::kExited) return;
  const StorageSpace space = storage_space(folder.c_str()).value_or(StorageSpace{});
  if (space.total_bytes > 0 && space.free_bytes < kBlock) facts.full_folder = folder;
}

}  // namespace lrun::inline core
