#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "inspect/stack_fold.h"
#include "inspect/stack_sample.h"

namespace lrun::launcher {

/// True where a main thread with this activity, as of activity_of(), has rested in between, a second or two: a loader's
/// wait for its workers and a watchdog wake it now and then, and work does all the time.
bool has_rested(std::int64_t before, std::int64_t now);

/// Ranks at two moments, a second or two apart, between which none printed anything.
struct TwoLooks {
  std::vector<StackSample> before{};
  std::vector<StackSample> now{};    ///< of the same ranks
  std::vector<int> busy{};           ///< ranks whose processes used processor time in between
  std::vector<int> outside_store{};  ///< ranks that are not connected to the run's store
  std::string store_address = {};    ///< 'host:port' of that store
  bool store_has_number = false;     ///< the host of that is an address, for which no name service is asked
  bool calls_are_known = false;      ///< ranks say when they wait: the system call of another is place enough
};

/// True where no rank moved in between. Pure.
bool stand_still(const TwoLooks& looks);

/// These wait for the others to begin.
bool begins(const StackGroup& group);

/// Ranks that wait for each other, while none of them moves.
struct Standstill {
  std::vector<StackGroup> groups;
  bool is_for_good = true;  ///< false: a rank waits for something else than the others, and may go on
  bool at_start = false;  ///< a rank waits for the others to begin, who may have data to fetch or a slow name service;
                          ///< false, too, where all have begun, some with this run's store and some without it
  std::string hint;

  bool operator==(const Standstill&) const = default;
};

/// Finds ranks that wait in a collective operation for others that do not come: these stand still elsewhere, have
/// ended, or wait in another operation. Finds ranks that are stopped (SIGSTOP), too. Empty where a rank may go on: it
/// is at another place than before, its main thread worked, its processes compute, it sleeps or polls, or a disk keeps
/// it. Pure. \param looks  at all ranks of the run
std::optional<Standstill> find_standstill(const TwoLooks& looks);

/// The same one with the native stacks of a later look at some of the ranks. Empty where one of them has gone on. Pure.
std::optional<Standstill> with_stacks(TwoLooks looks, const std::vector<StackSample>& later);

}  // namespace lrun::launcher
