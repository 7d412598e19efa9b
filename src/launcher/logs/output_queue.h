#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

namespace lrun::launcher {

/// Bytes in order, added at the end and taken from the front: one block that grows on demand and is given back.
class OutputQueue {
 public:
  /// Where the next bytes go; there is room for `count`. Followed by commit().
  char* room(std::size_t count) {
    if (capacity_ - end_ < count) grow(count);
    return block_.get() + end_;
  }
  void commit(std::size_t count) { end_ += count; }

  [[nodiscard]] std::string_view front() const { return {block_.get() + begin_, end_ - begin_}; }
  [[nodiscard]] std::size_t size() const { return end_ - begin_; }
  [[nodiscard]] bool empty() const { return begin_ == end_; }
  [[nodiscard]] std::size_t capacity() const { return capacity_; }

  /// Takes `count` bytes off the front. Empty, a block that was hardly used goes back.
  void consume(std::size_t count);
  /// Drops everything and gives the block back.
  void clear();

 private:
  void grow(std::size_t count);

  std::unique_ptr<char[]> block_;
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace lrun::launcher
