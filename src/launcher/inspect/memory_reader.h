#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <utility>
#include <vector>

namespace lrun::launcher {

/// An address in another process.
using Address = std::uint64_t;

/// A part of another process's memory, and where its bytes are to go.
struct MemoryPiece {
  Address address = 0;
  void* to = nullptr;
  std::size_t bytes = 0;
};

/// Reads the memory of another process, whose pointers and counts may be anything: each reader does a limited number of
/// reads of limited size, so that whatever follows them ends.
class MemoryReader {
 public:
  /// Fills all pieces, or returns false.
  using Read = std::function<bool(std::span<const MemoryPiece> pieces)>;

  static constexpr std::size_t kMostPieces = 1024;  ///< that the kernel takes at once
  static constexpr std::size_t kMostBytes = std::size_t{1} << 20U;
  static constexpr int kMostReads = 50'000;

  explicit MemoryReader(Read read) : read_(std::move(read)) {}

  /// All pieces in one call of the kernel. False: they are too many or too large, or cannot be read.
  bool read(std::span<const MemoryPiece> pieces);
  bool read(Address address, void* to, std::size_t bytes) {
    const MemoryPiece piece{address, to, bytes};
    return read({&piece, 1});
  }

  /// Zeros where nothing can be read.
  template <typename Value>
  Value value(Address address) {
    Value value{};
    return read(address, &value, sizeof value) ? value : Value{};
  }

  /// Empty where they cannot be read.
  std::vector<unsigned char> bytes(Address address, std::size_t count);

 private:
  Read read_;
  int reads_left_ = kMostReads;
};

/// The value that stands `offset` bytes into `bytes`; zero where it does not fit.
template <typename Value>
Value value_at(std::span<const unsigned char> bytes, std::size_t offset) {
  Value value{};
  if (offset <= bytes.size() && bytes.size() - offset >= sizeof value)
    std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

}  // namespace lrun::launcher
