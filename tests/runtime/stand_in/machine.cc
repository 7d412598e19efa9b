// In: work for streams, from CUDA's and NCCL's interfaces. Out: the same work done in order, with random delays, and a
// report of memory that is used without order.
#include "runtime/stand_in/machine.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace lrun::test::stand_in {
namespace {

using Time = std::chrono::steady_clock::time_point;

struct QueuedWork {
  DeviceWork work;
  std::optional<Time> not_before;  // once it is the first
  bool has_arrived = false;
};

struct DeviceStream {
  int device = 0;
  std::deque<QueuedWork> queue;
  std::uint64_t queued = 0;
  StreamClock clock;  // at the end of the queue
};

struct DeviceEvent {
  int device = 0;
  bool is_counted = false;
  std::shared_ptr<bool> is_reached;  // of its last place; null: in no stream
  StreamClock clock;
};

struct PastAccess {
  const char* begin;
  const char* end;
  bool writes;
  std::uint64_t stream;
  std::uint64_t position;
  std::string name;
};

struct Allocation {
  std::size_t bytes;
  int device;
  std::vector<PastAccess> past;
};

struct Machine {
  std::recursive_mutex mutex;  // work runs with it held, and may add work
  std::condition_variable_any changed;
  std::map<std::uint64_t, DeviceStream> streams;
  std::map<std::uint64_t, DeviceEvent> events;
  std::map<const char*, Allocation> memory;
  std::array<std::uint64_t, kDevices> default_streams{};
  std::uint64_t last_number = 100;  // CUDA has meanings for the first ones, as handles
  bool has_begun = false;
};

Machine& machine() {
  static Machine& instance = *new Machine;  // its thread outlives main()
  return instance;
}

thread_local int device_of_thread = 0;
thread_local StreamClock known;

void join(StreamClock& clock, const StreamClock& other) {
  for (const auto& [stream, position] : other) clock[stream] = std::max(clock[stream], position);
}

/// Runs the first piece of work if its time has come. \return  whether it ran.
bool run_first(DeviceStream& stream, Time now, Time& next) {
  QueuedWork& first = stream.queue.front();
  if (!first.not_before) first.not_before = now + random_delay();
  if (now < *first.not_before) {
    next = std::min(next, *first.not_before);
    return false;
  }
  const bool is_broken = error_of_device(stream.device) != 0;
  if (!first.has_arrived) {
    first.has_arrived = true;
    if (!is_broken && first.work.arrive) first.work.arrive();
  }
  if (!is_broken && first.work.may_run && !first.work.may_run()) return false;
  const DeviceWork work = std::move(first.work);
  stream.queue.pop_front();
  if (work.run && (!is_broken || work.accesses.empty())) work.run();
  return true;
}

void serve() {
  Machine& all = machine();
  std::unique_lock lock(all.mutex);
  while (true) {
    Time next = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
    bool has_run = false;
    for (auto& [number, stream] : all.streams) {
      if (!stream.queue.empty()) has_run = run_first(stream, std::chrono::steady_clock::now(), next) || has_run;
    }
    if (has_run) all.changed.notify_all();
    if (!has_run) all.changed.wait_until(lock, next);
  }
}

void begin_to_serve() {
  if (std::exchange(machine().has_begun, true)) return;
  std::thread(serve).detach();
}

Allocation* allocation_of(const char* memory, const char** begin) {
  auto& memories = machine().memory;
  auto after = memories.upper_bound(memory);
  if (after == memories.begin()) return nullptr;
  --after;
  *begin = after->first;
  return memory < after->first + after->second.bytes ? &after->second : nullptr;
}

/// Compares an access with all earlier ones of the same memory.
void check_access(const Access& access, const std::string& name, std::uint64_t number, const StreamClock& clock) {
  if (access.bytes == 0) return;
  const auto* begin = static_cast<const char*>(access.memory);
  const auto* end = begin + access.bytes;
  const char* start = nullptr;
  Allocation* allocation = allocation_of(begin, &start);
  if (allocation == nullptr || end > start + allocation->bytes) {
    return report_misuse(name + " uses memory that is no device's");
  }
  const int device = machine().streams.at(number).device;
  if (allocation->device != device) {
    report_misuse(name + " on device " + std::to_string(device) + " uses memory of device " +
                  std::to_string(allocation->device));
  }
  for (const PastAccess& past : allocation->past) {
    if (past.end <= begin || end <= past.begin || (!past.writes && !access.writes)) continue;
    const auto known_position = clock.find(past.stream);
    if (known_position != clock.end() && known_position->second >= past.position) continue;
    report_misuse(name + " in stream " + std::to_string(number) + " uses memory of " + past.name + " in stream " +
                  std::to_string(past.stream) + ", and nothing orders the two");
  }
  std::erase_if(allocation->past, [&](const PastAccess& past) {  // what is ordered behind this one is behind those too
    return access.writes && begin <= past.begin && past.end <= end;
  });
  allocation->past.push_back({begin, end, access.writes, number, clock.at(number), name});
}

template <typename Predicate>
bool wait_until(Predicate holds) {
  Machine& all = machine();
  std::unique_lock lock(all.mutex);
  if (all.changed.wait_for(lock, std::chrono::seconds(kLongestWaitSeconds), holds)) return true;
  report_misuse("the host waits for work that does not end");
  return false;
}

}  // namespace

int current_device() { return device_of_thread; }
void set_current_device(int device) { device_of_thread = device; }

std::uint64_t make_stream(int device) {
  Machine& all = machine();
  const std::lock_guard lock(all.mutex);
  all.streams[++all.last_number].device = device;
  return all.last_number;
}

std::uint64_t default_stream(int device) {
  Machine& all = machine();
  const std::lock_guard lock(all.mutex);
  std::uint64_t& number = all.default_streams[static_cast<std::size_t>(device)];
  if (number == 0) number = make_stream(device);
  return number;
}

int device_of_stream(std::uint64_t stream) {
  Machine& all = machine();
  const std::lock_guard lock(all.mutex);
  const auto found = all.streams.find(stream);
  return found == all.streams.end() ? -1 : found->second.device;
}

StreamClock known_to_thread() { return known; }

void add_work(std::uint64_t stream, DeviceWork work) { add_work(stream, std::move(work), known); }

void add_work(std::uint64_t number, DeviceWork work, const StreamClock& known_before) {
  Machine& all = machine();
  const std::lock_guard lock(all.mutex);
  DeviceStream& stream = all.streams.at(number);
  join(stream.clock, known_before);
  stream.clock[number] = ++stream.queued;
  for (const Access& access : work.accesses) check_access(access, work.name, number, stream.clock);
  stream.queue.push_back({std::move(work), std::nullopt});
  begin_to_serve();
  all.changed.notify_all();
}

bool is_idle(std::uint64_t number) {
  Machine& all = machine();
  const std::lock_guard lock(all.mutex);
  const DeviceStream& stream = all.streams.at(number);
  if (stream.queue.empty()) join(known, stream.clock);
  return stream.queue.empty();
}

bool wait_for_stream(std::uint64_t number) {
  return wait_until([number] { return is_idle(number); });
}

bool wait_for_device(int device) {
  return wait_until([device] {
    for (auto& [number, stream] : machine().streams) {
      if (stream.device == device && !is_idle(number)) return false;
    }
    return true;
  });
}

std::uint64_t make_event(int device, bool is_counted) {
  Machine& all = machine();
  const std::lock_guard lock(all.mutex);
  all.events[++all.last_number] = {device, is_counted, nullptr, {}};
  if (is_counted) count_events(1);
  return all.last_number;
}

bool destroy_event(std::uint64_t number) {
  Machine& all = machine();
  const std::lock_guard lock(all.mutex);
  const auto found = all.events.find(number);
  if (found == all.events.end()) {
    report_misuse("an event is destroyed that does not exist");
    return false;
  }
  if (found->second.is_counted) count_events(-1);
  all.events.erase(found);
  return true;
}

int record_event(std::uint64_t number, std::uint64_t stream) {
  Machine& all = machine();
  const std::lock_guard lock(all.mutex);
  const auto found = all.events.find(number);
  if (found == all.events.end() || !all.streams.contains(stream)) {
    report_misuse("a record of an event or in a stream that does not exist");
    return cudaErrorInvalidResourceHandle;
  }
  if (found->second.device != all.streams.at(stream).device) {
    report_misuse("an event of device " + std::to_string(found->second.device) + " is recorded in a stream of device " +
                  std::to_string(all.streams.at(stream).device));
    return cudaErrorInvalidResourceHandle;
  }
  const auto reached = std::make_shared<bool>(false);
  add_work(stream, {.name = "an event", .run = [reached] { *reached = true; }});
  found->second.is_reached = reached;
  found->second.clock = all.streams.at(stream).clock;
  return cudaSuccess;
}

int hold_back(std::uint64_t stream, std::uint64_t number) {
  Machine& all = machine();
  const std::lock_guard lock(all.mutex);
  const auto found = all.events.find(number);
  if (found == all.events.end() || !all.streams.contains(stream)) {
    report_misuse("a wait for an event or of a stream that does not exist");
    return cudaErrorInvalidResourceHandle;
  }
  if (!found->second.is_reached) {
    report_misuse("a wait for an event that is in no stream");
    return cudaSuccess;  // CUDA does not mind
  }
  join(all.streams.at(stream).clock, found->second.clock);
  add_work(stream, {.name = "a wait", .may_run = [reached = found->second.is_reached] { return *reached; }});
  return cudaSuccess;
}

int has_reached(std::uint64_t number) {
  Machine& all = machine();
  const std::lock_guard lock(all.mutex);
  const auto found = all.events.find(number);
  if (found == all.events.end()) {
    report_misuse("a query of an event that does not exist");
    return -1;
  }
  if (!found->second.is_reached) return 1;
  if (!*found->second.is_reached) return 0;
  join(known, found->second.clock);
  return 1;
}

int wait_for_event(std::uint64_t number) {
  int reached = 0;
  wait_until([&] { return (reached = has_reached(number)) != 0; });
  return reached;
}

void* allocate(std::size_t bytes, int device) {
  Machine& all = machine();
  const std::lock_guard lock(all.mutex);
  void* memory = std::aligned_alloc(512, (bytes + 511) / 512 * 512);
  if (memory == nullptr) return nullptr;
  std::memset(memory, 0xFF, bytes);
  all.memory[static_cast<const char*>(memory)] = {bytes, device, {}};
  return memory;
}

bool release(void* memory) {
  const int device = device_of_memory(memory);
  if (device < 0) {
    report_misuse("memory is freed that is no device's");
    return false;
  }
  wait_for_device(device);
  Machine& all = machine();
  const std::lock_guard lock(all.mutex);
  all.memory.erase(static_cast<const char*>(memory));
  std::free(memory);
  return true;
}

int device_of_memory(const void* memory) {
  Machine& all = machine();
  const std::lock_guard lock(all.mutex);
  const char* begin = nullptr;
  const Allocation* allocation = allocation_of(static_cast<const char*>(memory), &begin);
  return allocation == nullptr ? -1 : allocation->device;
}

void with_machine(const std::function<void()>& change) {
  Machine& all = machine();
  const std::lock_guard lock(all.mutex);
  change();
  all.changed.notify_all();
}

void forget_accesses() {
  for (int device = 0; device < kDevices; ++device) wait_for_device(device);
  with_machine([] {
    for (auto& [begin, allocation] : machine().memory) allocation.past.clear();
  });
}

void look_again() {
  with_machine([] {});
}

Obstacle::Obstacle(std::uint64_t stream) {
  add_work(stream, {.name = "an obstacle", .may_run = [removed = is_removed_] { return *removed; }});
}

void Obstacle::remove() {
  with_machine([this] { *is_removed_ = true; });
}

}  // namespace lrun::test::stand_in
