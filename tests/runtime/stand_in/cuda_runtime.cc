// CUDA's runtime as C functions, as far as liblrun_cuda.so and LibTorch's c10_cuda call it. In: their calls. Out: work
// for the machine, and CUDA's errors: the injected one, and that of a broken device.
#include <cuda_runtime_api.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <utility>

#include "runtime/stand_in/machine.h"
#include "runtime/stand_in/script.h"

using namespace lrun::test::stand_in;  // NOLINT: the functions below are not of a namespace

namespace {

constexpr std::size_t kMemory = std::size_t{1} << 30;

/// Of this thread, since begin_run().
struct LastError {
  std::uint64_t run = 0;
  cudaError_t error = cudaSuccess;
};
thread_local LastError last_error;

cudaError_t answer(int error) {
  if (error != cudaSuccess) last_error = {number_of_run(), static_cast<cudaError_t>(error)};
  return static_cast<cudaError_t>(error);
}

int enter(const char* function, const void* caller) {
  const int error = enter_call(function, caller);
  return error != 0 ? error : error_of_device(current_device());
}

std::uint64_t number_of(const void* handle) { return reinterpret_cast<std::uintptr_t>(handle); }

std::uint64_t stream_of(cudaStream_t handle) {
  return handle == nullptr ? default_stream(current_device()) : number_of(handle);
}

template <typename Handle>
Handle handle_of(std::uint64_t number) {
  return reinterpret_cast<Handle>(number);  // NOLINT(performance-no-int-to-ptr): handles are no addresses
}

int check_device(int device) { return device >= 0 && device < kDevices ? cudaSuccess : cudaErrorInvalidDevice; }

/// A stream that exists, or CUDA's error.
int check_stream(std::uint64_t stream) {
  if (device_of_stream(stream) >= 0) return cudaSuccess;
  report_misuse("a stream that does not exist");
  return cudaErrorInvalidResourceHandle;
}

using DriverLock = std::shared_timed_mutex;

/// As seen in CUDA's driver: a thread that waits for the GPU shares a lock of its process, which is a device's here,
/// and one that makes or destroys an event wants it alone.
DriverLock& driver_lock() {
  static std::array<DriverLock, kDevices> locks;
  return locks.at(static_cast<std::size_t>(current_device()));
}

[[nodiscard]] std::unique_lock<DriverLock> change_events(const std::string& function) {
  std::unique_lock lock(driver_lock(), std::chrono::seconds(kLongestWaitSeconds));
  if (!lock) report_misuse(function + " waits for a thread that waits for the GPU");
  return lock;
}

int copy(void* to, const void* from, std::size_t bytes, std::uint64_t stream, bool waits) {
  if (const int error = check_stream(stream)) return error;
  DeviceWork work{.name = "a copy", .run = [=] { std::memmove(to, from, bytes); }};
  const bool from_device = device_of_memory(from) >= 0;
  const bool to_device = device_of_memory(to) >= 0;
  if (from_device) work.accesses.push_back({from, bytes, false});
  if (to_device) work.accesses.push_back({to, bytes, true});
  add_work(stream, std::move(work));
  const bool is_late = from_device && to_device && !waits;
  const std::shared_lock driver(driver_lock());
  if (!is_late && !wait_for_stream(stream)) return cudaErrorLaunchTimeout;
  return error_of_device(device_of_stream(stream));
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming)
#define LRUN_ENTER() \
  if (const int error = enter(__func__, __builtin_return_address(0))) return answer(error)

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  LRUN_ENTER();
  *count = kDevices;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  LRUN_ENTER();
  *device = current_device();
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  LRUN_ENTER();
  if (const int error = check_device(device)) return answer(error);
  set_current_device(device);
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  LRUN_ENTER();
  if (const int error = check_device(device)) return answer(error);
  *properties = {};
  std::strcpy(properties->name, "stand-in");
  properties->major = 9;
  properties->totalGlobalMem = kMemory;
  properties->multiProcessorCount = 1;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int device) {
  LRUN_ENTER();
  if (const int error = check_device(device)) return answer(error);
  std::snprintf(text, static_cast<std::size_t>(size), "0000:%02x:00.0", 16 + device);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  LRUN_ENTER();
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  LRUN_ENTER();
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  LRUN_ENTER();
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  LRUN_ENTER();
  const std::shared_lock driver(driver_lock());
  if (!wait_for_device(current_device())) return answer(cudaErrorLaunchTimeout);
  return answer(error_of_device(current_device()));
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int /*device*/, int /*peer*/) {
  LRUN_ENTER();
  *can = 0;
  return cudaSuccess;
}

cudaError_t cudaGetLastError() {
  const LastError last = std::exchange(last_error, {});
  return last.run == number_of_run() ? last.error : cudaSuccess;
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorNotReady:
      return "device not ready";
    case cudaErrorIllegalAddress:
      return "an illegal memory access was encountered";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    default:
      return "an error of the stand-in";
  }
}

const char* cudaGetErrorName(cudaError_t error) { return error == cudaSuccess ? "cudaSuccess" : "cudaError"; }

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int /*priority*/) {
  LRUN_ENTER();
  if (flags != cudaStreamNonBlocking) report_misuse("a stream that is ordered with the default stream: not modelled");
  *stream = handle_of<cudaStream_t>(make_stream(current_device()));
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  LRUN_ENTER();
  if (const int error = check_stream(stream_of(stream))) return answer(error);
  return answer(is_idle(stream_of(stream)) ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  LRUN_ENTER();
  if (const int error = check_stream(stream_of(stream))) return answer(error);
  const std::shared_lock driver(driver_lock());
  if (!wait_for_stream(stream_of(stream))) return answer(cudaErrorLaunchTimeout);
  return answer(error_of_device(device_of_stream(stream_of(stream))));
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned /*flags*/) {
  LRUN_ENTER();
  return answer(hold_back(stream_of(stream), number_of(event)));
}

cudaError_t cudaStreamIsCapturing(cudaStream_t /*stream*/, cudaStreamCaptureStatus* status) {
  LRUN_ENTER();
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  LRUN_ENTER();
  *mode = cudaStreamCaptureModeGlobal;
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned /*flags*/) {
  const void* caller = __builtin_return_address(0);
  LRUN_ENTER();
  const auto driver = change_events(__func__);
  const bool is_ours = library_of(caller) != "libc10_cuda.so";  // the allocator of LibTorch keeps its events
  *event = handle_of<cudaEvent_t>(make_event(current_device(), is_ours));
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  LRUN_ENTER();
  const auto driver = change_events(__func__);
  return answer(destroy_event(number_of(event)) ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  LRUN_ENTER();
  return answer(record_event(number_of(event), stream_of(stream)));
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  LRUN_ENTER();
  const int reached = has_reached(number_of(event));
  return answer(reached < 0 ? cudaErrorInvalidResourceHandle : reached == 0 ? cudaErrorNotReady : cudaSuccess);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  LRUN_ENTER();
  const std::shared_lock driver(driver_lock());
  const int reached = wait_for_event(number_of(event));
  if (reached <= 0) return answer(reached < 0 ? cudaErrorInvalidResourceHandle : cudaErrorLaunchTimeout);
  return answer(error_of_device(current_device()));
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  LRUN_ENTER();
  *memory = allocate(bytes, current_device());
  return answer(*memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess);
}

cudaError_t cudaFree(void* memory) {
  LRUN_ENTER();
  if (memory == nullptr) return cudaSuccess;
  return answer(release(memory) ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  LRUN_ENTER();
  *free = *total = kMemory;
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind /*kind*/) {
  LRUN_ENTER();
  return answer(copy(to, from, bytes, default_stream(current_device()), true));
}

/// Of ordinary memory of the host: CUDA returns when it has been read or written.
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind /*kind*/,
                            cudaStream_t stream) {
  LRUN_ENTER();
  return answer(copy(to, from, bytes, stream_of(stream), false));
}
}
// NOLINTEND(readability-identifier-naming)
