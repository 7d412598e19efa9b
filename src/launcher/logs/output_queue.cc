#include "logs/output_queue.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace lrun::launcher {

void OutputQueue::consume(std::size_t count) {
  begin_ += count;
  if (begin_ != end_) return;
  constexpr std::size_t kSmall = std::size_t{64} * 1024;
  const bool hardly_used = end_ < capacity_ / 8;  // the flood is over; in a flood the block stays warm
  if (capacity_ > kSmall && hardly_used) {
    clear();
  } else {
    begin_ = end_ = 0;
  }
}

void OutputQueue::clear() {
  block_.reset();
  capacity_ = begin_ = end_ = 0;
}

void OutputQueue::grow(std::size_t count) {
  const std::size_t queued = size();
  if (queued + count <= capacity_ / 2) {  // enough is free at the front, and moving costs less than it gives
    std::memmove(block_.get(), block_.get() + begin_, queued);
  } else {
    const std::size_t wanted = std::max({queued + count, capacity_ + capacity_ / 2, std::size_t{4096}});
    std::unique_ptr<char[]> larger(new char[wanted]);  // not value-initialised: touches no page
    if (queued > 0) std::memcpy(larger.get(), block_.get() + begin_, queued);
    block_ = std::move(larger);
    capacity_ = wanted;
  }
  begin_ = 0;
  end_ = queued;
}

}  // namespace lrun::launcher
