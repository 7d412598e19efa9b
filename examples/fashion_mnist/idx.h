#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fashion_mnist {

/// An array in the idx format of the MNIST files: a view, the bytes belong to the caller.
struct IdxArray {
  std::vector<std::int64_t> shape;       ///< (images, rows, columns) or (labels)
  std::span<const std::uint8_t> values;  ///< the product of `shape` elements, last dimension fastest
};

/// Reads an idx file of unsigned bytes that has `dimensions` dimensions.
///
/// Format: two zero bytes, the type (8: unsigned byte), the number of dimensions, each dimension as a big-endian 32-bit
/// number, the values. Pure, and safe for any bytes: every number is checked against the length before it is used.
///
/// \throws DataError  what is wrong with the bytes; the caller knows the file's name.
IdxArray parse_idx(std::span<const std::uint8_t> bytes, std::size_t dimensions);

}  // namespace fashion_mnist
