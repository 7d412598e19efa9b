// The idx parser of examples/fashion_mnist: whatever it accepts lies within the bytes it was given.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "../../examples/fashion_mnist/errors.h"
#include "../../examples/fashion_mnist/idx.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  for (std::size_t dimensions = 1; dimensions <= 3; ++dimensions) {
    try {
      const fashion_mnist::IdxArray array = fashion_mnist::parse_idx({data, size}, dimensions);
      std::uint64_t elements = 1;
      for (const std::int64_t length : array.shape) elements *= static_cast<std::uint64_t>(length);
      const bool inside = array.values.data() + array.values.size() == data + size;
      if (!inside || array.shape.size() != dimensions || elements != array.values.size()) std::abort();
    } catch (const fashion_mnist::DataError&) {  // the expected answer to nearly all inputs
    }
  }
  return 0;
}
