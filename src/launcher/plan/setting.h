#pragma once

#include <string>
#include <utility>

namespace lrun::launcher {

/// Who decided a value; later ones win.
enum class Source { kDefault, kScheduler, kConfig, kEnvironment, kFlag };

/// A value that remembers where it came from, for --dry-run, hints and conflicts.
template <class T>
struct Setting {
  T value{};
  Source source = Source::kDefault;
  std::string
      origin;  ///< What the user wrote it as: '--devices', 'LRUN_SEED', 'lrun.toml:3: seed'; empty for a default.

  [[nodiscard]] bool given() const { return source != Source::kDefault; }
  bool operator==(const Setting&) const = default;
};

}  // namespace lrun::launcher
