#pragma once

#include "cluster/allocation.h"

namespace lrun::launcher {

/// Asks the NVIDIA driver for the machine's GPUs through libnvidia-ml.so.1, which is opened for this one question and
/// closed again. No CUDA context is created. A failure of the driver is part of the answer; nothing is thrown. A driver
/// that crashes or hangs takes its caller along, so find_gpus() calls this in a child process.
///
/// A GPU in MIG mode cannot run programs itself: its instances replace it, and without instances it is left out.
/// `visible_as` is the index, or the UUID of an instance. CUDA_VISIBLE_DEVICES is not looked at.
GpuInventory ask_nvml();

}  // namespace lrun::launcher
