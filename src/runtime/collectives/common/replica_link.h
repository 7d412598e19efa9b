#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <string>

#include "base/clock.h"

namespace lrun::detail {

/// The part of NCCL and CUDA that ReplicaGroup uses, call by call: a communicator and a separate stream for each
/// replica of one process. Replica 0 is the module's. The constructor begins to connect; no call waits.
///
/// Threads  one at a time. \throws Error  from every call that is not noexcept: the library's error, with the call.
class ReplicaLink {
 public:
  virtual ~ReplicaLink() = default;

  /// Whether connecting, or the last group of calls, has begun on all devices. Nothing else may be called before.
  virtual bool is_settled() = 0;

  /// All calls between these two are one operation to the library.
  virtual void begin_group() = 0;
  virtual void end_group() = 0;
  /// Within a group, for each replica once: replica 0's bytes into all others' tensors.
  virtual void broadcast(std::size_t replica, const at::Tensor& tensor) = 0;
  /// Within a group, for each replica once: the sum of all tensors into replica 0's. Others keep theirs.
  virtual void sum(std::size_t replica, const at::Tensor& tensor) = 0;

  /// Orders streams: later work on the link's streams waits for the work on the callers' current streams; and the
  /// reverse.
  virtual void wait_for_callers() = 0;
  virtual void hold_callers() = 0;
  /// Whether all work up to the last hold_callers() is done.
  virtual bool is_reached() = 0;
  /// An error that the library detected on its own; empty if there is none.
  virtual std::string asynchronous_error() = 0;

  /// Frees the communicators at the end of a training that succeeded, with nothing in flight. At the deadline it aborts
  /// them. Afterwards only abort() may be called.
  virtual void close(SteadyTime deadline) noexcept = 0;
  /// Ends what is in flight and frees the communicators; may be called again. No other call is made afterwards.
  virtual void abort() noexcept = 0;
};

}  // namespace lrun::detail
