#include "idx.h"

#include <string>

#include "errors.h"

namespace fashion_mnist {
namespace {

constexpr std::uint8_t kUnsignedByte = 8;

std::uint32_t big_endian(std::span<const std::uint8_t> bytes) {
  std::uint32_t value = 0;
  for (const std::uint8_t byte : bytes.first(4)) value = value << 8 | byte;
  return value;
}

}  // namespace

IdxArray parse_idx(std::span<const std::uint8_t> bytes, std::size_t dimensions) {
  const std::size_t header = 4 + 4 * dimensions;
  if (bytes.size() < header) {
    throw DataError("ends within its header: " + std::to_string(bytes.size()) + " of " + std::to_string(header) +
                    " bytes");
  }
  if (bytes[0] != 0 || bytes[1] != 0) throw DataError("is not an idx file: its first two bytes are not zero");
  if (bytes[2] != kUnsignedByte) {
    throw DataError("holds elements of type " + std::to_string(bytes[2]) + ", not unsigned bytes (8)");
  }
  if (bytes[3] != dimensions) {
    throw DataError("has " + std::to_string(bytes[3]) + " dimensions, not " + std::to_string(dimensions));
  }

  IdxArray array;
  const std::uint64_t present = bytes.size() - header;
  std::uint64_t elements = 1;
  for (std::size_t dimension = 0; dimension < dimensions; ++dimension) {
    const std::uint64_t length = big_endian(bytes.subspan(4 + 4 * dimension));
    if (length == 0) throw DataError("is empty: dimension " + std::to_string(dimension) + " is 0");
    // Below 2^64: elements is at most `present`, length at most 2^32.
    if (elements > UINT64_MAX / length || elements * length > present) {
      throw DataError("is cut off: its header promises more than the " + std::to_string(present) +
                      " bytes that follow it");
    }
    elements *= length;
    array.shape.push_back(static_cast<std::int64_t>(length));
  }
  if (elements != present) {
    throw DataError("is damaged: " + std::to_string(present) + " bytes follow its header, which promises " +
                    std::to_string(elements));
  }
  array.values = bytes.subspan(header);
  return array;
}

}  // namespace fashion_mnist
