#pragma once

#include <lrun/collectives.h>

#include <memory>

#include "runtime/collectives/group_options.h"

namespace lrun {

/// The seam to liblrun_cuda.so, which holds everything that touches CUDA and NCCL: a CPU program neither links nor
/// loads them. The library defines one C function under kCudaEntryPoint, of this type.
///
/// \param options  the group to make; both libraries are of one build.
/// \param error    receives a text of at most 1023 characters when the result is null.
/// \return  the group, owned by the caller, or null.
using CudaEntryPoint = Collectives* (*)(const GroupOptions* options, char error[1024]);
inline constexpr char kCudaEntryPoint[] = "lrun_cuda_make_collectives_v1";
inline constexpr char kCudaLibrary[] = "liblrun_cuda.so";

/// Opens the library from the folder of liblrun (or where the loader looks) and makes the group with it.
/// \throws Unsupported  the library is missing or does not load; the text says which and what is in its place.
/// \throws Error        it cannot make the group.
std::unique_ptr<Collectives> make_with_cuda(const GroupOptions& options);

}  // namespace lrun
