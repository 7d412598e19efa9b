#include "logs/line_splitter.h"

namespace lrun::launcher {

void LineSplitter::forget() {
  constexpr std::size_t kWorthKeeping = 4096;  // an ordinary line: the next one needs it again
  if (held_.capacity() > kWorthKeeping) {
    held_ = {};
  } else {
    held_.clear();
  }
}

}  // namespace lrun::launcher
