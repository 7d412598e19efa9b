#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/stand_in/script.h"

namespace lrun::test::stand_in {

/// Memory of a device that work reads or writes.
struct Access {
  const void* memory = nullptr;
  std::size_t bytes = 0;
  bool writes = false;
};

/// The work of a stream in its turn, in the thread of the machine and with its lock held.
struct DeviceWork {
  std::string name;
  std::vector<Access> accesses = {};
  std::function<void()> arrive = {};   ///< Once, when all before it in the stream has ended.
  std::function<bool()> may_run = {};  ///< Empty: at once.
  std::function<void()> run = {};
};

/// Per stream the number of its pieces of work that are known to have ended.
using StreamClock = std::map<std::uint64_t, std::uint64_t>;

/// Streams, events and memory of all devices, run by one thread with random delays.
///
/// Streams are queues, events are places in them. A vector clock goes along with every piece of work: what its stream
/// has done, what it was told to wait for, and what its host thread knows to have ended. Misuse, which is reported:
///   - two pieces of work use the same memory, one writes, and nothing orders them; also when the memory was given to
///     another owner meanwhile;
///   - memory that is no device's, or of another device, or freed;
///   - a stream or an event that does not exist (any more), or of another device;
///   - a wait for an event that is in no stream;
///   - a wait of the host that lasts longer than kLongestWait.
///
/// A device's default stream is a stream like others. Threads  any. A thread knows nothing of what others waited for.
inline constexpr int kLongestWaitSeconds = 10;

/// Of the calling thread.
int current_device();
void set_current_device(int device);

/// A stream's number, never 0; a device's default stream has one too.
std::uint64_t make_stream(int device);
std::uint64_t default_stream(int device);
/// -1: no such stream.
int device_of_stream(std::uint64_t stream);
void add_work(std::uint64_t stream, DeviceWork work);
/// The same, with the knowledge of the thread that asked for it earlier.
void add_work(std::uint64_t stream, DeviceWork work, const StreamClock& known);
/// The work that this thread knows to have ended.
StreamClock known_to_thread();
bool is_idle(std::uint64_t stream);
/// \return  false: it lasted too long.
bool wait_for_stream(std::uint64_t stream);
bool wait_for_device(int device);

std::uint64_t make_event(int device, bool is_counted);
bool destroy_event(std::uint64_t event);
/// 0, or the error that CUDA has for it.
int record_event(std::uint64_t event, std::uint64_t stream);
int hold_back(std::uint64_t stream, std::uint64_t event);
/// 1: reached (or in no stream); 0: not yet; -1: no such event.
int has_reached(std::uint64_t event);
int wait_for_event(std::uint64_t event);

void* allocate(std::size_t bytes, int device);
/// Waits for all work of the device, as CUDA does. \return  false: it is no memory of a device.
bool release(void* memory);
/// -1: it is no memory of a device.
int device_of_memory(const void* memory);

/// Waits for all work, and from then on takes all memory for unused.
void forget_accesses();

/// Has the machine look again at what waits: something that may_run() depends on has changed. Any change is to be made
/// inside of with_machine().
void look_again();
void with_machine(const std::function<void()>& change);

/// Work that a test puts into a stream, and ends.
class Obstacle {
 public:
  explicit Obstacle(std::uint64_t stream);
  Obstacle(const Obstacle&) = delete;
  Obstacle& operator=(const Obstacle&) = delete;
  ~Obstacle() { remove(); }
  void remove();

 private:
  std::shared_ptr<bool> is_removed_ = std::make_shared<bool>(false);
};

}  // namespace lrun::test::stand_in
