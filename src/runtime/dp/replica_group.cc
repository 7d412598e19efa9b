// In: rows of tensors, one tensor per replica. Out: copies of the first, or sums into it, over a ReplicaLink; a
// watchdog aborts an exchange at its deadline. Called by ModuleCopies.
#include "runtime/dp/replica_group.h"

#include <lrun/error.h>

#include <algorithm>
#include <exception>
#include <thread>

#include "base/nearest.h"
#include "runtime/collectives/bootstrap/backoff.h"

namespace lrun::detail {
namespace {

constexpr std::int64_t kGroupBytes = std::int64_t{25} << 20;
constexpr std::size_t kGroupRows = 256;
constexpr int kTightPolls = 1000;  // a group is begun within microseconds, connecting takes a second

std::string names_of(const std::vector<at::Device>& devices) {
  std::vector<std::string> names;
  for (const at::Device& device : devices) names.push_back(device.str());
  return join_words(names);
}

/// Closes a group also when one of its calls throws: the library counts open ones by thread.
class OpenGroup {
 public:
  explicit OpenGroup(ReplicaLink& link) : link_(&link) { link.begin_group(); }
  OpenGroup(const OpenGroup&) = delete;
  OpenGroup& operator=(const OpenGroup&) = delete;
  ~OpenGroup() {
    try {
      close();
    } catch (const std::exception&) {
      // The exception thrown before is the cause.
    }
  }
  void close() {
    if (ReplicaLink* link = std::exchange(link_, nullptr)) link->end_group();
  }

 private:
  ReplicaLink* link_;
};

}  // namespace

std::vector<std::pair<std::size_t, std::size_t>> plan_exchanges(const std::vector<std::int64_t>& bytes) {
  std::vector<std::pair<std::size_t, std::size_t>> groups;
  std::int64_t sum = 0;
  for (std::size_t row = 0; row < bytes.size(); ++row) {
    const bool fits = !groups.empty() && sum + bytes[row] <= kGroupBytes && row - groups.back().first < kGroupRows;
    if (!fits) {
      groups.emplace_back(row, row);
      sum = 0;
    }
    groups.back().second = row + 1;
    sum += bytes[row];
  }
  return groups;
}

ReplicaGroup::ReplicaGroup(std::vector<at::Device> devices, std::unique_ptr<ReplicaLink> link,
                           std::chrono::milliseconds timeout)
    : devices_(std::move(devices)),
      timeout_(timeout),
      link_(std::move(link)),
      deadline_(std::chrono::steady_clock::now() + timeout),
      watchdog_([this] { look(); }, [this] { expire(); }) {
  const std::lock_guard lock(mutex_);
  try {
    settle("connecting");
  } catch (...) {
    link_->abort();
    throw;
  }
}

ReplicaGroup::~ReplicaGroup() {
  while (is_busy()) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // ends: the watchdog has the deadline
  const std::lock_guard lock(mutex_);
  failure_ ? link_->abort() : link_->close(std::chrono::steady_clock::now() + timeout_);
}

bool ReplicaGroup::can_broadcast(const ReplicaRow& row) const {
  if (row.size() != devices_.size() || !row.front().defined() || row.front().layout() != at::kStrided) return false;
  const at::Tensor& first = row.front();
  if (first.numel() == 0 || !first.is_non_overlapping_and_dense()) return false;
  for (std::size_t replica = 0; replica < row.size(); ++replica) {
    const at::Tensor& tensor = row[replica];
    const bool alike = tensor.defined() && tensor.layout() == at::kStrided && tensor.device() == devices_[replica] &&
                       tensor.scalar_type() == first.scalar_type() && tensor.sizes() == first.sizes() &&
                       tensor.strides() == first.strides();
    if (!alike) return false;
  }
  return true;
}

bool ReplicaGroup::can_sum(const ReplicaRow& row) const {
  if (!can_broadcast(row)) return false;
  const at::ScalarType dtype = row.front().scalar_type();
  return dtype == at::kFloat || dtype == at::kDouble || dtype == at::kHalf || dtype == at::kBFloat16;
}

void ReplicaGroup::broadcast(const std::vector<ReplicaRow>& rows) {
  exchange("sending the module to its replicas", rows, &ReplicaLink::broadcast);
}

void ReplicaGroup::sum(const std::vector<ReplicaRow>& rows) {
  exchange("summing the replicas' gradients", rows, &ReplicaLink::sum);
}

void ReplicaGroup::exchange(const std::string& name, const std::vector<ReplicaRow>& rows, Operation operation) {
  if (rows.empty()) return;
  std::vector<std::int64_t> bytes;
  for (const ReplicaRow& row : rows) bytes.push_back(static_cast<std::int64_t>(row.front().nbytes()));
  const std::lock_guard lock(mutex_);
  if (failure_) failure_->raise();
  last_ = name;
  deadline_ = std::chrono::steady_clock::now() + timeout_;
  try {
    link_->wait_for_callers();
    for (const auto& range : plan_exchanges(bytes)) {
      exchange_group(rows, range, operation);
      settle(name);
    }
    link_->hold_callers();
  } catch (const CollectiveTimeout&) {
    fail(late(name));
  } catch (const std::exception& error) {
    fail({Failure::Kind::kOther, error.what()});
  }
  watchdog_.arm(deadline_);
}

void ReplicaGroup::exchange_group(const std::vector<ReplicaRow>& rows, std::pair<std::size_t, std::size_t> range,
                                  Operation operation) {
  OpenGroup group(*link_);
  for (std::size_t row = range.first; row < range.second; ++row) {
    for (std::size_t replica = 0; replica < devices_.size(); ++replica) {
      ((*link_).*operation)(replica, rows[row][replica]);
    }
  }
  group.close();
}

/// With mutex_ held.
void ReplicaGroup::settle(const std::string& name) {
  Backoff backoff(deadline_, std::chrono::milliseconds(5));
  for (int polls = 0; !link_->is_settled(); ++polls) {
    if (backoff.is_over()) late(name).raise();
    polls < kTightPolls ? std::this_thread::yield() : backoff.sleep();
  }
}

/// With mutex_ held.
void ReplicaGroup::fail(const Failure& failure) {
  failure_ = failure;
  link_->abort();
  failure.raise();
}

Failure ReplicaGroup::late(const std::string& name) const {
  return {Failure::Kind::kTimeout, "NCCL between " + names_of(devices_) + ": " + name + " did not end within " +
                                       std::to_string(timeout_.count()) + " ms"};
}

bool ReplicaGroup::is_busy() {
  const std::lock_guard lock(mutex_);
  return !failure_ && !last_.empty() && !link_->is_reached();
}

/// Runs in the watchdog's thread. A thread that exchanges at this moment checks for errors itself.
void ReplicaGroup::look() noexcept {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || failure_) return;
  try {
    if (link_->is_reached()) return watchdog_.disarm();
    const std::string error = link_->asynchronous_error();
    if (error.empty()) return;
    fail({Failure::Kind::kOther, "NCCL between " + names_of(devices_) + ": " + last_ + ": " + error});
  } catch (const std::exception&) {
    // The next exchange throws it.
  }
}

void ReplicaGroup::expire() noexcept {
  const std::lock_guard lock(mutex_);
  try {
    if (failure_ || std::chrono::steady_clock::now() < deadline_ || link_->is_reached()) return;
    fail(late(last_));
  } catch (const std::exception&) {
    // The next exchange throws it.
  }
}

}  // namespace lrun::detail
