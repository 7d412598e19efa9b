// In: the restarts of a run so far and the verdict on its last attempt. Out: whether and when another follows. Restarts
// asks for it. Pure.
#include "supervise/restart_policy.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <csignal>
#include <string>
#include <utility>

#include "base/json.h"
#include "base/without_numbers.h"

namespace lrun::launcher {
namespace {

std::string message_without_numbers(const FailureRecord& record) {
  if (!record.error.empty()) return without_numbers(record.error + " at " + record.location);
  return record.evidence.empty() ? std::string() : without_numbers(record.evidence.back());
}

bool came_from_outside(const FailureRecord& record) {
  if (record.ending != FailureRecord::Ending::kSignaled) return false;
  return record.value == SIGKILL || record.value == SIGTERM || record.value == SIGINT || record.value == SIGHUP;
}

Duration delay_before(int restart_in_a_row, Duration backoff) {
  if (restart_in_a_row <= 1 || backoff <= Duration::zero()) return Duration::zero();
  Duration delay = backoff;
  for (int i = 2; i < restart_in_a_row && delay < kMostBackoff; ++i) delay *= 2;
  return std::max(backoff, std::min(delay, kMostBackoff));
}

/// An attempt that brought a newer checkpoint begins the delays anew, but for the first: a program that fails at once
/// after each checkpoint is not to fail a hundred times a second.
int in_a_row_after(const RestartHistory& history, bool was_healthy, bool is_further) {
  if (was_healthy) return 1;
  return is_further ? std::min(history.in_a_row + 1, 2) : history.in_a_row + 1;
}

}  // namespace

bool is_same_start_up_error(const FailureRecord& before, const FailureRecord& now) {
  if (Duration(before.lifetime_ms) >= kStartUp || Duration(now.lifetime_ms) >= kStartUp) return false;
  if (came_from_outside(before) || came_from_outside(now)) return false;
  return before.ending == now.ending && before.value == now.value && before.cause == now.cause &&
         message_without_numbers(before) == message_without_numbers(now);
}

RestartChoice choose_restart(const RestartRules& rules, const RestartHistory& history, const Verdict& verdict) {
  RestartChoice choice{.history = history};
  if (verdict.end.changes_nodes()) {
    choice.kind = RestartChoice::Kind::kResize;
    return choice;
  }
  if (!verdict.end.may_be_repeated() || rules.most == 0) return choice;
  const FailureRecord* const failure = verdict.failure();  // the culprit itself may have ended with 0
  const bool is_further = verdict.checkpoint_ns > history.checkpoint_ns;
  const int before_checkpoint = is_further ? history.used : history.before_checkpoint;
  const bool repeats =
      !is_further && history.last && failure != nullptr && is_same_start_up_error(*history.last, *failure);
  if (history.used - before_checkpoint >= rules.most) {
    choice.kind = RestartChoice::Kind::kUsedUp;
  } else if (repeats && !rules.repeats_identical) {
    choice.kind = RestartChoice::Kind::kRepeats;
  } else {
    const bool healthy = failure != nullptr && Duration(failure->lifetime_ms) >= kHealthy;
    choice.kind = RestartChoice::Kind::kRestart;
    choice.history = {history.used + 1, in_a_row_after(history, healthy, is_further),
                      failure == nullptr ? std::nullopt : std::optional(*failure), before_checkpoint,
                      std::max(history.checkpoint_ns, verdict.checkpoint_ns)};
    choice.delay = delay_before(choice.history.in_a_row, rules.backoff);
  }
  return choice;
}

std::string to_json(const RestartHistory& history) {
  return json_text({{"used", history.used},
                    {"in_a_row", history.in_a_row},
                    {"last", history.last ? to_json(*history.last) : std::string()},
                    {"before_checkpoint", history.before_checkpoint},
                    {"checkpoint_ns", history.checkpoint_ns}});
}

std::optional<RestartHistory> restart_history_from_json(std::string_view text) {
  try {
    const auto json = nlohmann::json::parse(text);
    RestartHistory history{json_integer(json.at("used")),
                           json_integer(json.at("in_a_row")),
                           {},
                           json_integer(json.at("before_checkpoint")),
                           json_integer<std::int64_t>(json.at("checkpoint_ns"))};
    const std::string last = json.at("last").get<std::string>();
    if (!last.empty()) history.last = failure_record_from_json(last);
    constexpr int kMost = 1'000'000'000;  // one more is still an int
    const bool sound = history.used <= kMost && history.in_a_row <= kMost && history.used >= 0 &&
                       history.in_a_row >= 0 && history.before_checkpoint >= 0 && history.since_checkpoint() >= 0 &&
                       history.last.has_value() == !last.empty();
    return sound ? std::optional(std::move(history)) : std::nullopt;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

}  // namespace lrun::launcher
