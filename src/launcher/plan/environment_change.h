#pragma once

#include <string>
#include <vector>

#include "base/environment.h"
#include "plan/setting.h"

namespace lrun::launcher {

/// A difference between the environment of workers and that of lrun.
struct EnvironmentChange {
  enum class Kind {
    kSet,     ///< to `value`
    kPassOn,  ///< as lrun has it, even if lrun would remove it
    kUnset,
  };
  Kind kind = Kind::kSet;
  std::string name;
  std::string value;  ///< of kSet
  Source source = Source::kFlag;
  std::string origin;  ///< '--env', '--unset', 'lrun.toml:3: env'

  bool operator==(const EnvironmentChange&) const = default;
};

/// '--env NAME=value', '--unset NAME'.
std::string as_written(const EnvironmentChange& change);

/// \throws UserError  lrun itself gives this variable to workers; always
[[noreturn]] void refuse_own_variable(const EnvironmentChange& change);

/// Adds a change. It replaces a change of the same name that does not come from a stronger source.
/// \throws UserError  the same source sets the name and unsets it, or lrun itself gives this variable to workers.
void add_change(std::vector<EnvironmentChange>& changes, EnvironmentChange change);

/// The environment that workers start from.
Environment changed(const Environment& base, const std::vector<EnvironmentChange>& changes);

/// The user gives the variable to workers, whatever lrun would do with it.
bool is_wanted(const std::vector<EnvironmentChange>& changes, std::string_view name);

/// One line for each variable that should be passed on and does not exist, and for each value with a second 'NAME='.
std::vector<std::string> warn_about_changes(const Environment& base, const std::vector<EnvironmentChange>& changes);

}  // namespace lrun::launcher
