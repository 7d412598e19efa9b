#include "runtime/devices/fake_device.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/detail/HPUHooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/alloc_cpu.h>
#include <torch/library.h>

#include <array>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>

namespace lrun::test {
namespace {

constexpr auto kFake = c10::DeviceType::HPU;

struct Queue {
  std::deque<std::function<void()>> work;
  std::uint64_t queued = 0;
  std::uint64_t done = 0;
};

using Key = std::pair<int, c10::StreamId>;

/// All streams of all devices. Recursive: what waits for an event runs the work of another stream.
struct Machine {
  std::recursive_mutex mutex;
  std::map<Key, Queue> queues;
  std::vector<std::string> history;
  std::set<const void*> pinned;
  c10::StreamId last_stream = 0;
};

Machine& machine() {
  static Machine& instance = *new Machine;
  return instance;
}

Key key_of(const c10::Stream& stream) { return {stream.device_index(), stream.id()}; }

std::string name_of(const Key& key) { return std::to_string(key.first) + ":" + std::to_string(key.second); }

void say(const std::string& what) {
  Machine& all = machine();
  const std::lock_guard lock(all.mutex);
  all.history.push_back(what);
}

void add_work(const Key& key, std::function<void()> work) {
  Machine& all = machine();
  const std::lock_guard lock(all.mutex);
  Queue& queue = all.queues[key];
  queue.work.push_back(std::move(work));
  ++queue.queued;
}

void run_until(const Key& key, std::uint64_t count) {
  Machine& all = machine();
  const std::lock_guard lock(all.mutex);
  Queue& queue = all.queues[key];
  while (queue.done < count) {
    const auto work = std::move(queue.work.front());
    queue.work.pop_front();
    ++queue.done;
    work();
  }
}

std::uint64_t queued_in(const Key& key) {
  Machine& all = machine();
  const std::lock_guard lock(all.mutex);
  return all.queues[key].queued;
}

void run_all(const Key& key) { run_until(key, queued_in(key)); }

thread_local int current_device = 0;
thread_local std::array<c10::StreamId, kFakeDevices> current_streams{};

Key current_stream(int device) { return {device, current_streams[static_cast<std::size_t>(device)]}; }

struct Event {
  Key stream;
  std::uint64_t count = 0;
};

struct FakeGuard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kFake; }
  c10::Device getDevice() const override { return fake(current_device); }
  void setDevice(c10::Device device) const override {
    TORCH_CHECK(device.index() >= 0 && device.index() < kFakeDevices, "no such fake device");
    current_device = device.index();
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override { current_device = device.index(); }
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    setDevice(device);
    return before;
  }
  c10::DeviceIndex deviceCount() const noexcept override { return kFakeDevices; }

  c10::Stream getStream(c10::Device device) const override {
    const int index = device.has_index() ? device.index() : current_device;
    return c10::Stream(c10::Stream::UNSAFE, fake(index), current_stream(index).second);
  }
  c10::Stream getDefaultStream(c10::Device device) const override { return c10::Stream(c10::Stream::DEFAULT, device); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool /*priority*/) const override {
    const std::lock_guard lock(machine().mutex);
    return c10::Stream(c10::Stream::UNSAFE, device, ++machine().last_stream);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    const c10::Stream before = getStream(stream.device());
    current_streams[static_cast<std::size_t>(stream.device_index())] = stream.id();
    return before;
  }
  bool queryStream(const c10::Stream& stream) const override {
    const std::lock_guard lock(machine().mutex);
    return machine().queues[key_of(stream)].work.empty();
  }
  void synchronizeStream(const c10::Stream& stream) const override { run_all(key_of(stream)); }

  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex /*index*/,
              const c10::EventFlag /*flag*/) const override {
    if (*event == nullptr) *event = new Event;
    *static_cast<Event*>(*event) = {key_of(stream), queued_in(key_of(stream))};
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event == nullptr) return;
    const Event mark = *static_cast<const Event*>(event);
    add_work(key_of(stream), [mark] { run_until(mark.stream, mark.count); });
  }
  bool queryEvent(void* event) const override {
    const std::lock_guard lock(machine().mutex);
    const auto* mark = static_cast<const Event*>(event);
    return mark == nullptr || machine().queues[mark->stream].done >= mark->count;
  }
  void synchronizeEvent(void* event) const override {
    if (event != nullptr) run_until(static_cast<const Event*>(event)->stream, static_cast<const Event*>(event)->count);
  }
  void destroyEvent(void* event, const c10::DeviceIndex /*index*/) const noexcept override {
    delete static_cast<Event*>(event);
  }
  void synchronizeDevice(const c10::DeviceIndex index) const override {
    for (c10::StreamId stream = 0; stream <= machine().last_stream; ++stream) run_all({index, stream});
  }
  void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& stream) const override {
    say("used " + std::to_string(data.device().index()) + " in " + name_of(key_of(stream)));
  }
};

C10_REGISTER_GUARD_IMPL(HPU, FakeGuard)

/// Memory whose every byte is 0xFF until something is written.
struct FakeAllocator final : c10::Allocator {
  c10::DataPtr allocate(std::size_t bytes) override {
    void* memory = c10::alloc_cpu(bytes);
    if (memory != nullptr) std::memset(memory, 0xFF, bytes);
    return {memory, memory, &c10::free_cpu, fake(current_device)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &c10::free_cpu; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }
};

FakeAllocator& fake_allocator() {
  static FakeAllocator& instance = *new FakeAllocator;
  return instance;
}

struct PinnedAllocator final : c10::Allocator {
  static void release(void* memory) {
    const std::lock_guard lock(machine().mutex);
    machine().pinned.erase(memory);
    c10::free_cpu(memory);
  }
  c10::DataPtr allocate(std::size_t bytes) override {
    void* memory = c10::alloc_cpu(bytes);
    const std::lock_guard lock(machine().mutex);
    machine().pinned.insert(memory);
    return {memory, memory, &release, at::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }
};

struct FakeHooks final : at::HPUHooksInterface {
  void init() const override {}
  bool hasHPU() const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return kFakeDevices; }
  void setCurrentDevice(c10::DeviceIndex device) const override { current_device = device; }
  c10::DeviceIndex getCurrentDevice() const override { return static_cast<c10::DeviceIndex>(current_device); }
  bool isPinnedPtr(const void* data) const override {
    const std::lock_guard lock(machine().mutex);
    const auto after = machine().pinned.upper_bound(data);
    return after != machine().pinned.begin() && *std::prev(after) == data;
  }
  at::Allocator* getPinnedMemoryAllocator() const override {
    static PinnedAllocator& instance = *new PinnedAllocator;
    return &instance;
  }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex device) const override {
    static const auto& generators = *new std::array<at::Generator, kFakeDevices>{
        at::make_generator<at::CPUGeneratorImpl>(), at::make_generator<at::CPUGeneratorImpl>()};
    return generators[static_cast<std::size_t>(device < 0 ? current_device : device)];
  }
};

const bool registered = [] {
  c10::SetAllocator(kFake, &fake_allocator());
  at::HPUHooksRegistry()->Register("HPUHooks", [](at::HPUHooksArgs) { return std::make_unique<FakeHooks>(); });
  return true;
}();

/// The same memory, for the CPU's operators.
at::Tensor as_cpu(const at::Tensor& tensor) {
  if (tensor.is_cpu()) return tensor;
  return at::from_blob(tensor.data_ptr(), tensor.sizes(), tensor.strides(), tensor.options().device(at::kCPU));
}

void wait_for_current_stream(const at::Tensor& tensor) {
  if (!tensor.is_cpu()) run_all(current_stream(tensor.device().index()));
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  const at::AutoDispatchBelowADInplaceOrView plain;
  const bool late = non_blocking && from.is_cpu() && from.is_pinned();
  if (!late) {
    wait_for_current_stream(from);
    wait_for_current_stream(to);
    as_cpu(to).copy_(as_cpu(from));
    return to;
  }
  const Key stream = current_stream(to.device().index());
  say("copy " + name_of(stream));
  add_work(stream, [from, to, stream] {
    const at::AutoDispatchBelowADInplaceOrView in_any_thread;
    as_cpu(to).copy_(from);
    say("ran " + name_of(stream));
  });
  return to;
}

at::Tensor empty_strided(c10::IntArrayRef sizes, c10::IntArrayRef strides, std::optional<at::ScalarType> dtype,
                         std::optional<at::Layout> /*layout*/, std::optional<at::Device> device,
                         std::optional<bool> /*pin*/) {
  const c10::DeviceGuard guard(device.value_or(fake(current_device)));
  return at::Tensor(at::detail::empty_strided_generic(
      sizes, strides, &fake_allocator(), c10::DispatchKeySet(c10::DispatchKey::HPU), c10::dtype_or_default(dtype)));
}

at::Tensor empty(c10::IntArrayRef sizes, std::optional<at::ScalarType> dtype, std::optional<at::Layout> /*layout*/,
                 std::optional<at::Device> device, std::optional<bool> /*pin*/,
                 std::optional<at::MemoryFormat> format) {
  const c10::DeviceGuard guard(device.value_or(fake(current_device)));
  return at::Tensor(at::detail::empty_generic(sizes, &fake_allocator(), c10::DispatchKeySet(c10::DispatchKey::HPU),
                                              c10::dtype_or_default(dtype), format));
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  if (from.sizes() != to.sizes()) {
    const at::Tensor larger = at::empty(from.sizes(), to.options());
    to.unsafeGetTensorImpl()->set_storage_keep_dtype(larger.storage());
    to.unsafeGetTensorImpl()->set_sizes_and_strides(larger.sizes(), larger.strides(), 0);
  }
  return copy_from(from, to, false);
}

at::Tensor as_strided(const at::Tensor& self, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                      std::optional<std::int64_t> offset) {
  return at::native::as_strided_tensorimpl(self, sizes, strides, offset);
}

at::Tensor view(const at::Tensor& self, c10::IntArrayRef sizes) { return at::native::view(self, sizes); }

at::Tensor& set_storage(at::Tensor& self, at::Storage storage) { return at::native::set_(self, std::move(storage)); }

at::Tensor& set_storage_at(at::Tensor& self, at::Storage storage, std::int64_t offset, c10::IntArrayRef sizes,
                           c10::IntArrayRef strides) {
  self.unsafeGetTensorImpl()->set_storage_keep_dtype(std::move(storage));
  self.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, offset);
  return self;
}

at::Scalar local_scalar(const at::Tensor& self) {
  wait_for_current_stream(self);
  return as_cpu(self).item();
}

void run_on_cpu(const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
  at::native::cpu_fallback(operation, stack);
}

TORCH_LIBRARY_IMPL(aten, HPU, library) {
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("_copy_from", &copy_from);
  library.impl("_copy_from_and_resize", &copy_from_and_resize);
  library.impl("as_strided", &as_strided);
  library.impl("view", &view);
  library.impl("set_.source_Storage", &set_storage);
  library.impl("set_.source_Storage_storage_offset", &set_storage_at);
  library.impl("_local_scalar_dense", &local_scalar);
}

TORCH_LIBRARY_IMPL(_, HPU, library) { library.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_cpu>()); }

}  // namespace

at::Device fake(int index) { return {kFake, static_cast<c10::DeviceIndex>(index)}; }

std::vector<std::string> fake_history() {
  const std::lock_guard lock(machine().mutex);
  return machine().history;
}

void forget_fake_history() {
  const std::lock_guard lock(machine().mutex);
  machine().history.clear();
}

std::size_t waiting_copies() {
  const std::lock_guard lock(machine().mutex);
  std::size_t waiting = 0;
  for (const std::string& line : machine().history) {
    if (line.starts_with("copy ")) ++waiting;
    if (line.starts_with("ran ")) --waiting;
  }
  return waiting;
}

}  // namespace lrun::test
