// In: lrun's own environment. Out: the values that LRUN_ and PET_ variables give to options, and warnings about names
// that are none. parse_command_line() calls it.
#include "cli/environment_values.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "base/nearest.h"
#include "base/split.h"

namespace lrun::launcher {
namespace {

/// The other variables that lrun gives to workers, or that lrun, its build or its runtime read.
constexpr std::array<std::string_view, 16> kContractVariables{
    "LRUN_RUN_ID",    "LRUN_STRATEGY", "LRUN_DEVICES",       "LRUN_SEED",      "LRUN_RESUME",   "LRUN_STATE",
    "LRUN_CACHE",     "LRUN_LIBTORCH", "LRUN_JOB_SECRET",    "LRUN_NO_CGROUP", "LRUN_NO_PIDFD", "LRUN_WITH_PYTORCH",
    "LRUN_ETCD_USER", "LRUN_JOBS",     "LRUN_SKIP_PACKAGES", "LRUN_MEMORY_DIR"};

/// Those that lrun sets for itself. People do not write them, so no hint names one.
constexpr std::array<std::string_view, 7> kOwnVariables{
    "LRUN_PROGRESS_FD",     "LRUN_LAUNCH_CALL", "LRUN_SRUN_PORT",    "LRUN_OUTCOME_TOKEN",
    "LRUN_NTASKS_PER_NODE", "LRUN_SRUN_FOLDER", "LRUN_MODULE_PYTHON"};

constexpr std::string_view kPrefix = "LRUN_";

/// Compares the few variables that begin with LRUN_ instead of making the names of a hundred flags.
std::optional<GivenValue> value_of_lrun_variable(const Flag& flag, const Environment& environment) {
  const auto& variables = environment.variables();
  for (auto entry = variables.lower_bound(kPrefix); entry != variables.end() && entry->first.starts_with(kPrefix);
       ++entry) {
    const auto& [name, value] = *entry;
    if (value.empty() || name.size() != kPrefix.size() + flag.name.size() || name != lrun_variable_of(flag)) continue;
    return GivenValue{&flag, value, Source::kEnvironment, name};
  }
  return std::nullopt;
}

std::optional<GivenValue> value_of(const Flag& flag, const Environment& environment, bool inside_a_run) {
  if (!inside_a_run) {
    if (auto value = value_of_lrun_variable(flag, environment)) return value;
  }
  if (!flag.torchrun_variable) return std::nullopt;
  std::string variable = torchrun_variable_of(flag);
  auto value = environment.get(variable);
  if (!value) return std::nullopt;
  return GivenValue{&flag, std::move(*value), Source::kEnvironment, std::move(variable)};
}

bool is_contract(std::string_view name) {
  return std::find(kContractVariables.begin(), kContractVariables.end(), name) != kContractVariables.end() ||
         std::find(kOwnVariables.begin(), kOwnVariables.end(), name) != kOwnVariables.end();
}

std::vector<std::string> known_variables() {
  std::vector<std::string> names(kContractVariables.begin(), kContractVariables.end());
  for (const Flag& flag : flag_table()) {
    if (flag.lrun_variable) names.push_back(lrun_variable_of(flag));
  }
  return names;
}

/// The known variable that is the beginning of `name`, begins with it or is near it; empty: none. All of them begin
/// with the prefix, so it says nothing about how near they are.
std::string variable_meant_by(const std::string& name, const std::vector<std::string>& known) {
  const Flag* const same = find_long_flag("--" + lower_case(name.substr(kPrefix.size())));  // by another of its names
  if (same != nullptr && same->lrun_variable) return lrun_variable_of(*same);
  std::vector<std::string> parts;
  for (const std::string& candidate : known) {
    if (candidate.starts_with(name) || name.starts_with(candidate + "_")) return candidate;
    parts.push_back(candidate.substr(kPrefix.size()));
  }
  const auto nearest = nearest_word(name.substr(kPrefix.size()), parts);
  return nearest ? std::string(kPrefix) + *nearest : std::string();
}

}  // namespace

std::vector<GivenValue> values_from_environment(const Environment& environment) {
  std::vector<GivenValue> values;
  const bool inside_a_run = environment.has("LRUN_RUN_ID");
  for (const Flag& flag : flag_table()) {
    if (auto value = value_of(flag, environment, inside_a_run)) values.push_back(std::move(*value));
  }
  return values;
}

std::vector<std::string> warn_about_unknown_variables(const Environment& environment) {
  std::vector<std::string> warnings;
  const auto& variables = environment.variables();
  for (auto entry = variables.lower_bound(kPrefix); entry != variables.end() && entry->first.starts_with(kPrefix);
       ++entry) {
    if (is_contract(entry->first)) continue;
    const std::vector<std::string> known = known_variables();
    if (std::find(known.begin(), known.end(), entry->first) != known.end()) continue;
    const std::string meant = variable_meant_by(entry->first, known);
    const std::string hint = meant.empty() ? "" : "; " + did_you_mean(meant);
    warnings.push_back("variable '" + entry->first + "' is unknown and ignored" + hint);
  }
  return warnings;
}

}  // namespace lrun::launcher
