#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "runtime/collectives/common/failure.h"
#include "runtime/collectives/common/replica_link.h"
#include "runtime/collectives/common/watchdog.h"

namespace lrun::detail {

/// Tensors that belong together, one per replica, in their order.
using ReplicaRow = std::vector<at::Tensor>;

/// How rows of so many bytes are combined, as pairs of first and behind the last: one operation costs the same for one
/// small tensor as for many, and a large one need not wait for all others to be listed.
std::vector<std::pair<std::size_t, std::size_t>> plan_exchanges(const std::vector<std::int64_t>& bytes);

/// The replicas of one process, each on a device of its own, that exchange tensors over a ReplicaLink: parameters and
/// buffers of the module to all replicas, and the sum of all gradients to the module's.
///
/// Streams   the link's own. Exchanges come after the work on the caller's current streams, and later work on these
///           streams waits for the exchange; the caller does not wait.
/// Deadline  of connecting and of each exchange, by a watchdog: an exchange that does not end is aborted, and its
///           tensors are unspecified. Every later call throws the reason.
/// Threads   the training thread.
class ReplicaGroup {
 public:
  /// Connects. \throws CollectiveTimeout  not before the deadline. \throws Error  as ReplicaLink.
  ReplicaGroup(std::vector<at::Device> devices, std::unique_ptr<ReplicaLink> link, std::chrono::milliseconds timeout);
  ReplicaGroup(const ReplicaGroup&) = delete;
  ReplicaGroup& operator=(const ReplicaGroup&) = delete;
  /// Waits for exchanges in flight.
  ~ReplicaGroup();

  /// Whether memory can be copied between the tensors as it is: one on each device, all of one dtype and layout.
  [[nodiscard]] bool can_broadcast(const ReplicaRow& row) const;
  /// The same for adding them.
  [[nodiscard]] bool can_sum(const ReplicaRow& row) const;

  /// The first of each row into all others. \throws CollectiveTimeout, Error
  void broadcast(const std::vector<ReplicaRow>& rows);
  /// The sum of each row into its first, in an order that is the same in every run on the same devices.
  /// \throws CollectiveTimeout, Error
  void sum(const std::vector<ReplicaRow>& rows);

 private:
  using Operation = void (ReplicaLink::*)(std::size_t replica, const at::Tensor& tensor);

  void exchange(const std::string& name, const std::vector<ReplicaRow>& rows, Operation operation);
  void exchange_group(const std::vector<ReplicaRow>& rows, std::pair<std::size_t, std::size_t> range,
                      Operation operation);
  void settle(const std::string& name);
  [[noreturn]] void fail(const Failure& failure);
  [[nodiscard]] Failure late(const std::string& name) const;
  [[nodiscard]] bool is_busy();
  void look() noexcept;
  void expire() noexcept;

  const std::vector<at::Device> devices_;
  const std::chrono::milliseconds timeout_;
  std::mutex mutex_;  // of all below, the link too
  std::unique_ptr<ReplicaLink> link_;
  std::string last_;  // exchange, as messages name it
  SteadyTime deadline_;
  std::optional<Failure> failure_;
  Watchdog watchdog_;  // last: its thread uses the others
};

}  // namespace lrun::detail
