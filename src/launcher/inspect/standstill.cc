// In: the stacks of ranks at two moments. Out: that they wait for each other in vain, and what to do. Called by
// StandstillMonitor. Pure.
#include "inspect/standstill.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "base/rank_list.h"
#include "verdict/collective_name.h"
#include "verdict/rank_places.h"

namespace lrun::launcher {
namespace {

bool is_stopped(const StackSample& sample) { return sample.state == 'T'; }

/// Calls that end by themselves, mostly: they are given a time. One that sleeps where the others wait for it, again and
/// again at the same place, is told after a while.
constexpr std::array<std::string_view, 3> kTimed{"select", "poll", "epoll_wait"};

/// A look or SIGCONT interrupts a call, which may go on under this name.
constexpr std::string_view kGoesOn = "restart_syscall";

bool ends_by_itself(const StackSample& before, const StackSample& now) {
  const std::string& call = now.system_call == kGoesOn ? before.system_call : now.system_call;
  return call == kGoesOn || std::find(kTimed.begin(), kTimed.end(), call) != kTimed.end();
}

bool in_same_call(const StackSample& before, const StackSample& now) {
  return (before.system_call == now.system_call && before.waits_for == now.waits_for) ||
         before.system_call == kGoesOn || now.system_call == kGoesOn;
}

bool at_same_place(const StackSample& before, const StackSample& now, bool calls_are_known) {
  if (before.pid != now.pid || before.python != now.python || before.native != now.native) return false;
  const bool has_stack = !now.python.empty() || !now.native.empty();
  return has_stack || (calls_are_known && !now.system_call.empty() && in_same_call(before, now));
}

bool has(const std::vector<int>& ranks, int rank) { return std::find(ranks.begin(), ranks.end(), rank) != ranks.end(); }

/// A state of D is a disk or a file server that answers. \param waits  for others, in an operation that may sleep
bool stood_still(const StackSample& before, const StackSample& now, bool waits, const TwoLooks& looks) {
  if (now.has_ended() || is_stopped(now)) return before.has_ended() || is_stopped(before);
  if (now.call) return before.call == now.call;  // however it waits
  return now.state == 'S' && before.state == 'S' && (waits || !ends_by_itself(before, now)) &&
         at_same_place(before, now, looks.calls_are_known) && has_rested(before.activity, now.activity) &&
         !has(looks.busy, now.rank);
}

bool waits_for_others(const StackSample& sample) { return fold_stacks({sample}).front().waits_for_others; }

std::vector<int> ranks_where(const std::vector<StackGroup>& groups, bool wait) {
  std::vector<int> ranks;
  for (const StackGroup& group : groups) {
    if (group.waits_for_others == wait) ranks.insert(ranks.end(), group.ranks.begin(), group.ranks.end());
  }
  return ranks;
}

std::string hint_about_others(const std::vector<StackGroup>& groups) {
  for (const StackGroup& group : groups) {
    if (!is_stopped(group.example)) continue;
    const std::string where = group.example.host.empty() ? "" : " on " + group.example.host;
    return fmt::format("'kill -CONT {}'{} continues a stopped process", group.example.pid, where);
  }
  return fmt::format("the others wait for {}; 'lrun stack' shows all calls", ranks_text(ranks_where(groups, false)));
}

std::string hint_about_all(const std::vector<StackGroup>& groups, const TwoLooks& looks) {
  std::vector<RankPlace> places;
  for (const StackGroup& group : groups) places.push_back({.place = group.place, .waits_for_others = true});
  if (!std::all_of(groups.begin(), groups.end(), begins)) return hint_about_waiting(places);
  if (const std::vector<int>& outside = looks.outside_store; !outside.empty()) {
    const std::string ranks = outside.size() == looks.now.size() ? "no rank uses"
                              : outside.size() == 1              ? ranks_text(outside) + " does not use"
                                                                 : ranks_text(outside) + " do not use";
    return fmt::format(
        "{} this run's store ({}): remove from the program what sets MASTER_ADDR or MASTER_PORT, or 'init_method'",
        ranks, looks.store_address);
  }
  return fmt::format(
      "all {} ranks are there, and the program waits for more: leave 'world_size' out, or start as many with '-n'",
      looks.now.size());
}

/// All have begun, but not with the same store: they never meet.
bool have_other_stores(const std::vector<StackGroup>& groups, const TwoLooks& looks) {
  return looks.store_has_number && std::all_of(groups.begin(), groups.end(), begins) && !looks.outside_store.empty() &&
         looks.outside_store.size() < looks.now.size();
}

}  // namespace

bool begins(const StackGroup& group) { return group.place.starts_with(kInitProcessGroup); }

bool has_rested(std::int64_t before, std::int64_t now) {
  constexpr std::int64_t kLittle = 3;
  return now >= before && now - before <= kLittle;
}

bool stand_still(const TwoLooks& looks) {
  const std::vector<int> waiting = ranks_where(fold_stacks(looks.now), true);
  // All may take part in a large operation, whose data go from one to the other.
  if (looks.calls_are_known && waiting.size() == looks.now.size() && !looks.busy.empty()) return false;
  return looks.before.size() == looks.now.size() &&
         std::all_of(looks.now.begin(), looks.now.end(), [&](const StackSample& now) {
           const auto before = std::find_if(looks.before.begin(), looks.before.end(),
                                            [&](const StackSample& sample) { return sample.rank == now.rank; });
           return before != looks.before.end() && stood_still(*before, now, has(waiting, now.rank), looks);
         });
}

std::optional<Standstill> find_standstill(const TwoLooks& looks) {
  if (!stand_still(looks)) return std::nullopt;
  std::vector<StackGroup> groups = fold_stacks(looks.now);
  const std::vector<int> waiting = ranks_where(groups, true);
  if (waiting.empty() && std::none_of(looks.now.begin(), looks.now.end(), is_stopped)) return std::nullopt;
  const bool all_wait = waiting.size() == looks.now.size();
  // liblrun says itself who does not come.
  if (all_wait && looks.calls_are_known && std::all_of(groups.begin(), groups.end(), begins)) return std::nullopt;
  const bool never_meet = have_other_stores(groups, looks);  // a connection may yet be made: that has some patience
  const bool is_for_good = !never_meet && !(all_wait && looks.calls_are_known) &&
                           std::all_of(groups.begin(), groups.end(), [](const StackGroup& group) {
                             return group.waits_for_others || group.example.has_ended() || is_stopped(group.example);
                           });
  std::string hint = all_wait ? hint_about_all(groups, looks) : hint_about_others(groups);
  const bool at_start = !never_meet && std::any_of(groups.begin(), groups.end(), begins);
  return Standstill{std::move(groups), is_for_good, at_start, std::move(hint)};
}

std::optional<Standstill> with_stacks(TwoLooks looks, const std::vector<StackSample>& later) {
  for (StackSample& sample : looks.now) {
    const auto found =
        std::find_if(later.begin(), later.end(), [&](const StackSample& it) { return it.rank == sample.rank; });
    if (found == later.end() || found->pid != sample.pid || found->native.empty()) continue;
    StackSample seen = sample;
    seen.native = found->native;
    const bool waited = waits_for_others(sample);
    const bool waits = waits_for_others(seen);
    const bool went_on = waited ? found->call != sample.call : waits || !in_same_call(sample, *found);
    if (went_on) return std::nullopt;
    if (waits == waited) sample = std::move(seen);
  }
  looks.before = looks.now;
  looks.busy.clear();
  return find_standstill(looks);
}

}  // namespace lrun::launcher
