#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "runtime/collectives/bootstrap/group_options.h"

namespace lrun::detail {

/// Messages between two ranks come in the order of their sending on each lane.
enum class GlooLane : int { kCall = 1, kData = 2, kLeave = 3, kNever = 4 };

/// A message in flight, in memory that outlives it. Its destructor cancels it: the memory is not touched any more.
class GlooMessage {
 public:
  virtual ~GlooMessage() = default;
  /// Returns when the memory may be used again (a received message is there), or after interrupt().
  /// \return  false when interrupted. \throws std::exception  the connection is lost.
  virtual bool wait(std::chrono::milliseconds longest) = 0;
  /// Ends a wait that has begun, or the next one. Threads any.
  virtual void interrupt() = 0;
};

/// Messages between the ranks of a group over TCP. Of LibTorch's ProcessGroupGloo only the connections are used,
/// because its own collectives can neither be cancelled nor name the missing rank.
///
/// Both ends of a message agree on its size; receiving another one would end the process.
///
/// Threads  send() and receive() on any, one at a time; close() on any.
class GlooLink {
 public:
  virtual ~GlooLink() = default;

  /// \throws std::exception  the connection to `peer` is lost.
  virtual std::unique_ptr<GlooMessage> send(int peer, const void* data, std::size_t bytes, GlooLane lane) = 0;
  virtual std::unique_ptr<GlooMessage> receive(int peer, void* data, std::size_t bytes, GlooLane lane) = 0;
  /// Closes all connections: waits on them throw, here and at the peers, after these have read all messages sent
  /// before.
  virtual void close() noexcept = 0;
};

/// Connects every rank with every other. Collective.
/// \param address  of this machine, a number: where the other ranks reach it.
/// \param prefix   of keys in the store, of this group alone.
/// \throws std::exception  not all ranks connected within the timeout.
std::unique_ptr<GlooLink> connect_gloo(const GroupOptions& options, const std::string& address,
                                       const std::string& prefix);

/// Whether this build has gloo.
bool has_gloo();

}  // namespace lrun::detail
