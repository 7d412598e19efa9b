#include "runtime/stand_in/reductions.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace lrun::test::stand_in {
namespace {

/// \param Sum  the type that is added in: 16 bits are not enough for it.
template <typename Element, typename Sum>
Bytes reduce_as(const std::vector<Bytes>& inputs, ncclRedOp_t operation) {
  Bytes result(inputs.front().size());
  for (std::size_t at = 0; at < result.size(); at += sizeof(Element)) {
    Sum total{};
    for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
      Element element;
      std::memcpy(&element, inputs[rank].data() + at, sizeof element);
      const auto value = static_cast<Sum>(element);
      if (rank == 0) {
        total = value;
      } else if (operation == ncclMax || operation == ncclMin) {
        total = operation == ncclMax ? std::max(total, value) : std::min(total, value);
      } else {
        total = static_cast<Sum>(total + value);
      }
    }
    if (operation == ncclAvg) total = static_cast<Sum>(total / static_cast<Sum>(inputs.size()));
    const auto element = static_cast<Element>(total);
    std::memcpy(result.data() + at, &element, sizeof element);
  }
  return result;
}

}  // namespace

std::size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclUint8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclFloat32:
      return 4;
    case ncclInt64:
    case ncclFloat64:
      return 8;
    default:
      return 0;
  }
}

Bytes reduce(const std::vector<Bytes>& inputs, ncclDataType_t type, ncclRedOp_t operation) {
  switch (type) {
    case ncclUint8:
      return reduce_as<std::uint8_t, std::uint8_t>(inputs, operation);
    case ncclFloat16:
      return reduce_as<c10::Half, float>(inputs, operation);
    case ncclBfloat16:
      return reduce_as<c10::BFloat16, float>(inputs, operation);
    case ncclInt32:
      return reduce_as<std::int32_t, std::int32_t>(inputs, operation);
    case ncclInt64:
      return reduce_as<std::int64_t, std::int64_t>(inputs, operation);
    case ncclFloat32:
      return reduce_as<float, float>(inputs, operation);
    default:
      return reduce_as<double, double>(inputs, operation);
  }
}

}  // namespace lrun::test::stand_in
