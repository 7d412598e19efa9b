#pragma once

#include <c10/core/Device.h>
#include <lrun/collectives.h>

#include <memory>

namespace lrun::detail {

/// A group of CPU memory for tensors of another device: each operation works on copies on the CPU, and the results are
/// copied back. Tensors of the CPU go to the group as they are. Buckets are the device's.
std::unique_ptr<Collectives> make_staged(std::unique_ptr<Collectives> group, at::Device device);

}  // namespace lrun::detail
