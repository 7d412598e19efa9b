#include "plan/environment_change.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/user_error.h"
#include "plan/worker_environment.h"

namespace lrun::launcher {
namespace {

/// ',BS=' in a value: what --env of other launchers ends there. Names in small letters may be of the value itself.
std::string second_name_in(const EnvironmentChange& change) {
  if (change.kind != EnvironmentChange::Kind::kSet) return {};
  const std::string_view value = change.value;
  constexpr std::string_view kOfNames = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
  for (std::size_t comma = value.find(','); comma != std::string_view::npos; comma = value.find(',', comma + 1)) {
    const std::size_t end = value.find_first_not_of(kOfNames, comma + 1);
    if (end != std::string_view::npos && end > comma + 1 && value[end] == '=') {
      return std::string(value.substr(comma + 1, end - comma - 1));
    }
  }
  return {};
}

}  // namespace

std::string as_written(const EnvironmentChange& change) {
  const std::string between = change.source == Source::kFlag ? " " : " = ";
  return change.origin + between + change.name +
         (change.kind == EnvironmentChange::Kind::kSet ? "=" + change.value : "");
}

void refuse_own_variable(const EnvironmentChange& change) {
  throw UserError("'" + as_written(change) + "': lrun itself gives '" + change.name + "' to workers",
                  "lrun(1) lists those variables under 'Variables that a worker gets'");
}

void add_change(std::vector<EnvironmentChange>& changes, EnvironmentChange change) {
  if (is_given_by_lrun(change.name)) refuse_own_variable(change);
  const auto same = std::find_if(changes.begin(), changes.end(),
                                 [&](const EnvironmentChange& other) { return other.name == change.name; });
  if (same == changes.end()) {
    changes.push_back(std::move(change));
    return;
  }
  if (same->source > change.source) return;
  if (same->source == change.source &&
      (same->kind == EnvironmentChange::Kind::kUnset) != (change.kind == EnvironmentChange::Kind::kUnset)) {
    throw UserError("'" + as_written(*same) + "' and '" + as_written(change) + "' contradict each other",
                    "remove one of them");
  }
  *same = std::move(change);
}

Environment changed(const Environment& base, const std::vector<EnvironmentChange>& changes) {
  Environment result = base;
  for (const EnvironmentChange& change : changes) {
    if (change.kind == EnvironmentChange::Kind::kSet) result.set(change.name, change.value);
    if (change.kind == EnvironmentChange::Kind::kUnset) result.unset(change.name);
  }
  return result;
}

bool is_wanted(const std::vector<EnvironmentChange>& changes, std::string_view name) {
  return std::any_of(changes.begin(), changes.end(), [&](const EnvironmentChange& change) {
    return change.name == name && change.kind != EnvironmentChange::Kind::kUnset;
  });
}

std::vector<std::string> warn_about_changes(const Environment& base, const std::vector<EnvironmentChange>& changes) {
  std::vector<std::string> warnings;
  for (const EnvironmentChange& change : changes) {
    if (const std::string second = second_name_in(change); !second.empty()) {
      warnings.push_back("'" + as_written(change) + "' sets " + change.name + " alone; '--env " + second +
                         "=VALUE' would set the other one");
    }
    if (change.kind != EnvironmentChange::Kind::kPassOn || base.has(change.name)) continue;
    warnings.push_back("there is no variable '" + change.name + "' to pass on with '" + as_written(change) + "'; '" +
                       change.name + "=VALUE' would set one");
  }
  return warnings;
}

}  // namespace lrun::launcher
