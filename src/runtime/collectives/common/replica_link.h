#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <string>

#include "base/clock.h"

namespace lrun::detail {

/// What ReplicaGroup needs of NCCL and CUDA, call by call: a communicator and a stream of its own for each replica of
/// one process. Replica 0 is the module's. Making one begins to connect; no call waits.
///
/// Threads  one at a time. \throws Error  from every call that is not noexcept: what the library says, with the call.
class ReplicaLink {
 public:
  virtual ~ReplicaLink() = default;

  /// Whether connecting, or what the last group asked for, has begun on all devices. Nothing else may be called before.
  virtual bool is_settled() = 0;

  /// All calls between these two are one operation to the library.
  virtual void begin_group() = 0;
  virtual void end_group() = 0;
  /// Within a group, for each replica once: replica 0's bytes into all others' tensors.
  virtual void broadcast(std::size_t replica, const at::Tensor& tensor) = 0;
  /// Within a group, for each replica once: the sum of all tensors into replica 0's. Others keep theirs.
  virtual void sum(std::size_t replica, const at::Tensor& tensor) = 0;

  /// What comes now on the link's streams is done after what the callers' current streams hold, and the other way
  /// round.
  virtual void wait_for_callers() = 0;
  virtual void hold_callers() = 0;
  /// Whether all that was asked for up to the last hold_callers() has been done.
  virtual bool is_reached() = 0;
  /// What the library noticed by itself; empty when all is well.
  virtual std::string asynchronous_error() = 0;

  /// Frees the communicators at the end of a training in which all went well and nothing is in flight: at the latest at
  /// the deadline, aborted then. No other call but abort() is made afterwards.
  virtual void close(SteadyTime deadline) noexcept = 0;
  /// Ends what is in flight and frees the communicators; may be called again. No other call is made afterwards.
  virtual void abort() noexcept = 0;
};

}  // namespace lrun::detail
