#include "inspect/memory_reader.h"

namespace lrun::launcher {

bool MemoryReader::read(std::span<const MemoryPiece> pieces) {
  std::size_t left = kMostBytes;
  for (const MemoryPiece& piece : pieces) {
    if (piece.bytes > left) return false;
    left -= piece.bytes;
  }
  if (pieces.size() > kMostPieces || reads_left_ == 0) return false;
  --reads_left_;
  return read_(pieces);
}

std::vector<unsigned char> MemoryReader::bytes(Address address, std::size_t count) {
  if (count > kMostBytes) return {};
  std::vector<unsigned char> bytes(count);
  if (!read(address, bytes.data(), count)) bytes.clear();
  return bytes;
}

}  // namespace lrun::launcher
