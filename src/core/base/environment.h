#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lrun::inline core {

/// A snapshot of environment variables: a value, so that planning is pure and tests can write one down.
/// Names are unique (the last one wins, as with setenv); order is by name.
class Environment {
 public:
  Environment() = default;
  explicit Environment(std::map<std::string, std::string, std::less<>> variables) : variables_(std::move(variables)) {}

  /// The variables of this process.
  static Environment of_this_process();

  /// The value, or empty when the variable is not there. A variable set to nothing gives an empty string.
  [[nodiscard]] std::optional<std::string> get(std::string_view name) const;
  [[nodiscard]] bool has(std::string_view name) const { return get(name).has_value(); }

  void set(std::string name, std::string value) { variables_[std::move(name)] = std::move(value); }
  void unset(const std::string& name) { variables_.erase(name); }

  [[nodiscard]] const std::map<std::string, std::string, std::less<>>& variables() const { return variables_; }

  bool operator==(const Environment&) const = default;

 private:
  std::map<std::string, std::string, std::less<>> variables_;
};

}  // namespace lrun::inline core
