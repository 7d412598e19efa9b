#include "runtime/collectives/shm/region.h"

#include <new>
#include <stdexcept>

namespace lrun::detail {
namespace {

constexpr std::size_t kRankSlotBytes = 2 * (ShmRegion::kSmallBytes + ShmRegion::kChunkBytes);

std::size_t cells_offset() { return round_up(sizeof(ControlBlock), kCellAlignment); }

std::size_t slots_offset(int world_size) {
  return round_up(cells_offset() + static_cast<std::size_t>(world_size) * sizeof(RankCell), page_size());
}

}  // namespace

std::size_t ShmRegion::bytes(int world_size) {
  return slots_offset(world_size) + static_cast<std::size_t>(world_size) * kRankSlotBytes;
}

ShmRegion ShmRegion::create(SharedMemory& memory, int world_size, std::uint64_t identity) {
  memory.resize(bytes(world_size));
  ShmRegion region(memory.map(0, bytes(world_size)), world_size);
  memory.populate({region.mapping_.data(), slots_offset(world_size)}, 0);
  auto* control = new (region.mapping_.data()) ControlBlock;
  control->identity = identity;
  control->world_size = static_cast<std::uint32_t>(world_size);
  for (int rank = 0; rank < world_size; ++rank) new (&region.cell(rank)) RankCell;
  return region;
}

ShmRegion ShmRegion::open(const SharedMemory& memory, int world_size, std::uint64_t identity) {
  // A mapping of a smaller file would succeed, and end the process when it is touched.
  if (memory.size() < bytes(world_size)) throw std::runtime_error("the shared memory belongs to another group");
  ShmRegion region(memory.map(0, bytes(world_size)), world_size);
  const ControlBlock& control = region.control();
  if (control.identity != identity || control.world_size != static_cast<std::uint32_t>(world_size)) {
    throw std::runtime_error("the shared memory belongs to another group");
  }
  return region;
}

void ShmRegion::populate_slots(const SharedMemory& memory, int rank) const {
  std::byte* slots = small_slot(rank, 0);
  memory.populate({slots, kRankSlotBytes}, static_cast<std::size_t>(slots - mapping_.data()));
}

ControlBlock& ShmRegion::control() const { return *std::launder(reinterpret_cast<ControlBlock*>(mapping_.data())); }

RankCell& ShmRegion::cell(int rank) const {
  auto* cells = reinterpret_cast<RankCell*>(mapping_.data() + cells_offset());
  return *std::launder(cells + rank);
}

std::byte* ShmRegion::small_slot(int rank, std::uint64_t parity) const {
  return mapping_.data() + slots_offset(world_size_) + static_cast<std::size_t>(rank) * kRankSlotBytes +
         (parity % 2) * kSmallBytes;
}

std::byte* ShmRegion::chunk_slot(int rank, std::uint64_t parity) const {
  return small_slot(rank, 0) + 2 * kSmallBytes + (parity % 2) * kChunkBytes;
}

}  // namespace lrun::detail
