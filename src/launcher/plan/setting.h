#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace lrun::launcher {

/// The origin of a value. Later ones win.
enum class Source { kDefault, kScheduler, kConfig, kEnvironment, kFlag };

/// A value that remembers where it came from, for --dry-run, hints and conflicts.
template <class T>
struct Setting {
  T value{};
  Source source = Source::kDefault;
  /// The name under which the user gave it: '--devices', 'LRUN_SEED', 'lrun.toml:3: seed'. Empty for a default.
  std::string origin;

  [[nodiscard]] bool given() const { return source != Source::kDefault; }
  bool operator==(const Setting&) const = default;
};

/// \name text_of()
/// A value as its option takes it. Other types have overloads beside their definitions.
/// @{
inline const std::string& text_of(const std::string& text) { return text; }
inline std::string text_of(int number) { return std::to_string(number); }
/// 'auto' where lrun is to choose.
template <class T>
std::string text_of(const std::optional<T>& value) {
  return value ? std::string(text_of(*value)) : "auto";
}
/// @}

/// A value as the user wrote it: '--devices 8', 'PET_NPROC_PER_NODE=8'; of one host '-H node1:8', 'hosts.txt: node1:8'.
std::string as_written(const std::string& origin, std::string_view value);

template <class T>
std::string as_written(const Setting<T>& setting) {
  return as_written(setting.origin, text_of(setting.value));
}

/// Stands for '--exclude' where that option left only some devices of a host.
inline constexpr const char* kLeftByExclude = "left by --exclude";

/// The origin of a value that the user gave for one host of several: '-H, node1'.
std::string origin_of_host(const std::string& origin, const std::string& host);

}  // namespace lrun::launcher
