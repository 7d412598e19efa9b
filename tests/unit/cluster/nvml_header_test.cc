// Where NVIDIA's nvml.h is on the include path, the compiler compares with it what lrun, and the fake driver, take the
// library's structures and entry points for. Elsewhere this file is empty.
#if __has_include(<nvml.h>)
#include <nvml.h>

#include <cstddef>

#include "cluster/nvml_library.h"

namespace lrun::launcher {
namespace {

using Nvml = NvmlLibrary;

static_assert(static_cast<int>(NVML_SUCCESS) == Nvml::kSuccess);
static_assert(static_cast<int>(NVML_ERROR_INSUFFICIENT_SIZE) == Nvml::kInsufficientSize);
static_assert(static_cast<int>(NVML_ERROR_DRIVER_NOT_LOADED) == Nvml::kDriverNotLoaded);
static_assert(static_cast<int>(NVML_ERROR_LIBRARY_NOT_FOUND) == Nvml::kLibraryNotFound);
static_assert(static_cast<int>(NVML_ERROR_GPU_IS_LOST) == Nvml::kGpuIsLost);

static_assert(sizeof(nvmlPciInfo_t) == sizeof(Nvml::PciInfo));
static_assert(offsetof(nvmlPciInfo_t, domain) == offsetof(Nvml::PciInfo, domain));
static_assert(offsetof(nvmlPciInfo_t, busId) == offsetof(Nvml::PciInfo, address));
static_assert(sizeof(nvmlProcessInfo_t) == sizeof(Nvml::ProcessInfo));
static_assert(offsetof(nvmlProcessInfo_t, usedGpuMemory) == offsetof(Nvml::ProcessInfo, used_bytes));
static_assert(offsetof(nvmlProcessInfo_t, gpuInstanceId) == offsetof(Nvml::ProcessInfo, gpu_instance));
static_assert(sizeof(nvmlProcessUtilizationSample_t) == sizeof(Nvml::ProcessSample));
static_assert(offsetof(nvmlProcessUtilizationSample_t, timeStamp) == offsetof(Nvml::ProcessSample, time_us));
static_assert(offsetof(nvmlProcessUtilizationSample_t, smUtil) == offsetof(Nvml::ProcessSample, compute_percent));
static_assert(sizeof(nvmlUtilization_t) == sizeof(Nvml::Rates));
static_assert(offsetof(nvmlUtilization_t, memory) == offsetof(Nvml::Rates, memory_percent));

/// As many parameters, each as large: NVIDIA's are enums and structures where lrun has int and its own.
template <class Ours, class Theirs>
constexpr bool kAgree = false;
template <class Result, class... Ours, class TheirResult, class... Theirs>
constexpr bool kAgree<Result (*)(Ours...), TheirResult (*)(Theirs...)> = sizeof(Result) == sizeof(TheirResult) &&
                                                                         ((sizeof(Ours) == sizeof(Theirs)) && ...);

static_assert(kAgree<decltype(Nvml::init), decltype(&nvmlInit_v2)>);
static_assert(kAgree<decltype(Nvml::shutdown), decltype(&nvmlShutdown)>);
static_assert(kAgree<decltype(Nvml::error_string), decltype(&nvmlErrorString)>);
static_assert(kAgree<decltype(Nvml::count), decltype(&nvmlDeviceGetCount_v2)>);
static_assert(kAgree<decltype(Nvml::handle), decltype(&nvmlDeviceGetHandleByIndex_v2)>);
static_assert(kAgree<decltype(Nvml::uuid), decltype(&nvmlDeviceGetUUID)>);
static_assert(kAgree<decltype(Nvml::name), decltype(&nvmlDeviceGetName)>);
static_assert(kAgree<decltype(Nvml::pci_info), decltype(&nvmlDeviceGetPciInfo_v3)>);
static_assert(kAgree<decltype(Nvml::compute_mode), decltype(&nvmlDeviceGetComputeMode)>);
static_assert(kAgree<decltype(Nvml::compute_processes), decltype(&nvmlDeviceGetComputeRunningProcesses_v3)>);
static_assert(kAgree<decltype(Nvml::process_samples), decltype(&nvmlDeviceGetProcessUtilization)>);
static_assert(kAgree<decltype(Nvml::rates), decltype(&nvmlDeviceGetUtilizationRates)>);
static_assert(kAgree<decltype(Nvml::mig_mode), decltype(&nvmlDeviceGetMigMode)>);
static_assert(kAgree<decltype(Nvml::most_instances), decltype(&nvmlDeviceGetMaxMigDeviceCount)>);
static_assert(kAgree<decltype(Nvml::instance), decltype(&nvmlDeviceGetMigDeviceHandleByIndex)>);
static_assert(kAgree<decltype(Nvml::driver_version), decltype(&nvmlSystemGetDriverVersion)>);
static_assert(kAgree<decltype(Nvml::cuda_version), decltype(&nvmlSystemGetCudaDriverVersion_v2)>);
static_assert(kAgree<decltype(Nvml::p2p_status), decltype(&nvmlDeviceGetP2PStatus)>);
static_assert(kAgree<decltype(Nvml::remapped_rows), decltype(&nvmlDeviceGetRemappedRows)>);
static_assert(kAgree<decltype(Nvml::ecc_errors), decltype(&nvmlDeviceGetTotalEccErrors)>);

}  // namespace
}  // namespace lrun::launcher
#endif
