#pragma once

#include <ATen/core/Tensor.h>
#include <lrun/collectives.h>

#include <cstdint>
#include <vector>

namespace lrun::detail {

/// Sends one rank's tensors to all, packed as bytes into few broadcasts: any dtypes, shapes and layouts, on one device.
/// A value of plans: the packing is decided once, and run() may be called again and again.
class FlatBroadcast {
 public:
  /// \param tensors      alike on all ranks; a tensor that occurs twice is sent once. Undefined and empty ones are
  /// skipped. \param chunk_bytes  memory used for packing; a larger contiguous tensor is sent as it is.
  explicit FlatBroadcast(const std::vector<at::Tensor>& tensors, std::int64_t chunk_bytes = std::int64_t{25} << 20);

  /// Overwrites the tensors of all other ranks with `root`'s. Collective.
  void run(Collectives& collectives, int root = 0);

 private:
  struct Packed {
    at::Tensor tensor;
    std::int64_t offset = 0;  // in bytes
  };
  struct Chunk {
    std::vector<Packed> packed;
    std::int64_t bytes = 0;
  };

  static void run_chunk(const Chunk& chunk, Collectives& collectives, int root);

  std::vector<Chunk> chunks_;
};

}  // namespace lrun::detail
