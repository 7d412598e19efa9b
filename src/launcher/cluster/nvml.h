#pragma once

#include "cluster/allocation.h"

namespace lrun::launcher {

/// Asks the NVIDIA driver for the machine's GPUs through libnvidia-ml.so.1, which is opened for this one question and
/// closed again. No CUDA context is made. What the driver reports is an answer; nothing is thrown. A driver that
/// crashes or hangs takes its caller along: find_gpus() asks in a process of its own.
///
/// A GPU in MIG mode is replaced by its instances, or left out when it has none: it can run nothing itself.
/// `visible_as` is the index, of an instance its UUID: CUDA_VISIBLE_DEVICES is not looked at.
GpuInventory ask_nvml();

}  // namespace lrun::launcher
