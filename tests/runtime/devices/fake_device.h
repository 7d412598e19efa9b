#pragma once

#include <c10/core/Device.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lrun::test {

/// A kind of device for LibTorch that is no CPU, with two devices 'hpu:0' and 'hpu:1', in the memory of the CPU: what a
/// GPU does with devices, streams, events and pinned memory can be seen on it. Linking this file adds it, in the place
/// of a kind that LibTorch knows and is built without: parameters cannot be moved to kinds that it does not know.
///
/// Copies from pinned memory that do not block are as late as they can be: they run when something that a stream is
/// told to wait for needs them, or the device is synchronised. Code that forgets an event reads memory that nothing
/// was written into (each byte of new memory is 0xFF: not a number). Everything else runs at once, behind what was
/// queued in its thread's current stream before.
inline constexpr int kFakeDevices = 2;

at::Device fake(int index);

/// The events since forget_fake_history(), in order, of all threads:
///   'copy 0:3'      a late copy was queued in stream 3 of device 0
///   'ran 0:3'       it has been done
///   'used 0 in 0:4' the allocator was informed that memory of device 0 is used in stream 4
std::vector<std::string> fake_history();
void forget_fake_history();

/// Late copies that have not run.
std::size_t waiting_copies();

}  // namespace lrun::test
