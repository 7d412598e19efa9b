#pragma once

#include "cluster/allocation.h"

namespace lrun {

/// Asks the NVIDIA driver for the machine's GPUs through libnvidia-ml.so.1, which is opened for this one question and
/// closed again. No CUDA context is made. Everything that can go wrong is an answer; nothing is thrown.
/// `visible_as` of each is its index: CUDA_VISIBLE_DEVICES is not looked at.
GpuInventory ask_nvml();

}  // namespace lrun
