#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace lrun::launcher {

/// lrun's own log behind -v, 'lrun: info: text' for -v, 'lrun: debug: text' for -vv, with the time in
/// front. Without -v nothing of spdlog is set up and every call is one comparison.
///
/// Threads  the launcher's one thread.
class VerboseLog {
 public:
  using Write = std::function<void(const std::string& line)>;

  /// \param verbosity  how often -v was given; 0 is silence.
  /// \param write      takes each finished line.
  VerboseLog(int verbosity, Write write);
  ~VerboseLog();
  VerboseLog(VerboseLog&&) noexcept;
  VerboseLog& operator=(VerboseLog&&) noexcept;

  void info(std::string_view text) const;   ///< from -v on
  void debug(std::string_view text) const;  ///< from -vv on

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;  ///< empty: silence
};

}  // namespace lrun::launcher
