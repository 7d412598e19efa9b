#pragma once

#include <memory>
#include <string_view>

namespace lrun {

/// lrun's own log behind -v, on stderr: 'lrun: info: text' for -v, 'lrun: debug: text' for -vv, with the time in
/// front. Without -v nothing of spdlog is set up and every call is one comparison.
///
/// Threads  the launcher's one thread.
class VerboseLog {
 public:
  /// \param verbosity  how often -v was given; 0 is silence.
  explicit VerboseLog(int verbosity);
  ~VerboseLog();
  VerboseLog(VerboseLog&&) noexcept;
  VerboseLog& operator=(VerboseLog&&) noexcept;

  void info(std::string_view text) const;   ///< from -v on
  void debug(std::string_view text) const;  ///< from -vv on

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;  ///< empty: silence
};

}  // namespace lrun
