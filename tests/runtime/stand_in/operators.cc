// In: operators on tensors of kind CUDA. Out: work in the caller's current stream, on memory of LibTorch's allocator.
// Work that runs late knows addresses only: it keeps no tensor alive.
#include "runtime/stand_in/operators.h"

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/view_native.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include <mutex>
#include <utility>

#include "runtime/stand_in/machine.h"

// Of libc10_cuda.so, for libtorch_cuda.so: in no header.
namespace c10::cuda::_internal {
C10_CUDA_API void setHasPrimaryContext(bool (*function)(DeviceIndex));
}

namespace lrun::test::stand_in {
namespace {

/// The same memory, for the CPU's operators.
struct Place {
  void* memory;
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
  at::ScalarType dtype;
  std::size_t bytes;

  explicit Place(const at::Tensor& tensor)
      : memory(tensor.data_ptr()),
        sizes(tensor.sizes().vec()),
        strides(tensor.strides().vec()),
        dtype(tensor.scalar_type()),
        bytes(at::detail::computeStorageNbytes(sizes, strides, tensor.dtype().itemsize())) {}  // with the holes in it
  [[nodiscard]] at::Tensor tensor() const {
    return at::from_blob(memory, sizes, strides, at::TensorOptions().dtype(dtype));
  }
  [[nodiscard]] Access access(bool writes) const { return {memory, bytes, writes}; }
};

std::uint64_t current_stream_of(const at::Tensor& tensor) {
  const c10::cuda::CUDAStream stream = c10::cuda::getCurrentCUDAStream(tensor.get_device());
  if (stream.stream() == nullptr) return default_stream(tensor.get_device());
  return reinterpret_cast<std::uintptr_t>(stream.stream());
}

c10::Device device_of(std::optional<at::Device> device) {
  const c10::Device asked = device.value_or(at::Device(at::kCUDA));
  return asked.has_index() ? asked : c10::Device(at::kCUDA, c10::cuda::current_device());
}

c10::Allocator* allocator() {
  static std::once_flag once;
  std::call_once(once, [] {
    c10::cuda::_internal::setHasPrimaryContext([](c10::DeviceIndex) { return true; });
    c10::cuda::CUDACachingAllocator::init(kDevices);
  });
  return c10::cuda::CUDACachingAllocator::get();
}

at::Tensor empty(c10::IntArrayRef sizes, std::optional<at::ScalarType> dtype, std::optional<at::Layout> /*layout*/,
                 std::optional<at::Device> device, std::optional<bool> /*pin*/,
                 std::optional<at::MemoryFormat> format) {
  const c10::cuda::CUDAGuard guard(device_of(device));
  return at::Tensor(at::detail::empty_generic(sizes, allocator(), c10::DispatchKeySet(c10::DispatchKey::CUDA),
                                              c10::dtype_or_default(dtype), format));
}

at::Tensor empty_strided(c10::IntArrayRef sizes, c10::IntArrayRef strides, std::optional<at::ScalarType> dtype,
                         std::optional<at::Layout> /*layout*/, std::optional<at::Device> device,
                         std::optional<bool> /*pin*/) {
  const c10::cuda::CUDAGuard guard(device_of(device));
  return at::Tensor(at::detail::empty_strided_generic(
      sizes, strides, allocator(), c10::DispatchKeySet(c10::DispatchKey::CUDA), c10::dtype_or_default(dtype)));
}

at::Tensor& fill(at::Tensor& self, const at::Scalar& value) {
  const Place place(self);
  add_work(current_stream_of(self), {.name = "fill_", .accesses = {place.access(true)}, .run = [place, value] {
                                       const at::AutoDispatchBelowADInplaceOrView in_any_thread;
                                       place.tensor().fill_(value);
                                     }});
  return self;
}

at::Tensor& zero(at::Tensor& self) { return fill(self, 0); }

/// Between ordinary memory and a device; from a device it waits, and fails as a device does.
at::Tensor& copy(at::Tensor& self, const at::Tensor& from, bool /*non_blocking*/) {
  TORCH_CHECK(self.sizes() == from.sizes(), "not modelled: a copy to another shape");
  TORCH_CHECK(!self.is_cuda() || !from.is_cuda() || self.device() == from.device(), "not modelled: between devices");
  const Place to_place(self);
  const at::Tensor source = from.is_cuda() ? from : from.clone();  // kept: the caller may change it
  const Place from_place(source);
  const std::uint64_t stream = current_stream_of(self.is_cuda() ? self : from);
  DeviceWork work{.name = "copy_"};
  if (from.is_cuda()) work.accesses.push_back(from_place.access(false));
  if (self.is_cuda()) work.accesses.push_back(to_place.access(true));
  work.run = [to_place, from_place, kept = from.is_cuda() ? at::Tensor() : source] {
    const at::AutoDispatchBelowADInplaceOrView in_any_thread;
    to_place.tensor().copy_(from_place.tensor());
  };
  add_work(stream, std::move(work));
  if (!self.is_cuda()) c10::cuda::getCurrentCUDAStream(from.get_device()).synchronize();
  return self;
}

at::Tensor as_strided(const at::Tensor& self, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                      std::optional<std::int64_t> offset) {
  return at::native::as_strided_tensorimpl(self, sizes, strides, offset);
}

at::Tensor view(const at::Tensor& self, c10::IntArrayRef sizes) { return at::native::view(self, sizes); }

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("fill_.Scalar", &fill);
  library.impl("zero_", &zero);
  library.impl("copy_", &copy);
  library.impl("as_strided", &as_strided);
  library.impl("view", &view);
}

/// The backward of autograd asks whether there are devices at all. LibTorch looks for a class of this name.
struct CUDAHooks final : at::CUDAHooksInterface {
  explicit CUDAHooks(at::CUDAHooksArgs /*none*/) {}
  void init() const override { allocator(); }
  [[nodiscard]] bool isBuilt() const override { return true; }
  [[nodiscard]] bool isAvailable() const override { return true; }
  [[nodiscard]] bool hasPrimaryContext(c10::DeviceIndex /*device*/) const override { return true; }
};

using at::CUDAHooksRegistry;
using at::RegistererCUDAHooksRegistry;
REGISTER_CUDA_HOOKS(CUDAHooks)

}  // namespace

void provide_operators() { allocator(); }

}  // namespace lrun::test::stand_in
