#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/fd.h"

namespace lrun::detail {

/// The outcome of a launch of this program: its result, or its exception.
struct PastLaunch {
  /// The result, or the class of the exception: for other classes the nearest base.
  enum class Outcome : std::uint32_t {
    kReturned,
    kWorkersFailed,
    kUnsupported,
    kBadEnvironment,
    kError,
    kInvalidArgument,
    kOutOfRange,
    kLogicError,
    kSystemError,
    kRuntimeError,
    kBadAlloc,
  };

  Outcome outcome = Outcome::kReturned;
  int rank = -1;      ///< of WorkersFailed
  int code = 0;       ///< of WorkersFailed its exit code, of a std::system_error its errno
  std::string bytes;  ///< what the first rank returned (pack()); else the text of the exception

  bool operator==(const PastLaunch&) const = default;
};

/// Past launches in their order, in a file without a name in the folder for temporary files (TMPDIR, else /tmp): the
/// parameters of many launches are more than memory should hold. The file is made with the first one and goes with the
/// last process that has it open. One thread.
class LaunchHistory {
 public:
  LaunchHistory() = default;
  /// To read one that another process writes, from its beginning.
  explicit LaunchHistory(Fd file) : file_(std::move(file)) {}

  /// \throws std::system_error, std::filesystem::filesystem_error  no file, no room; nothing was added then.
  void append(const PastLaunch& launch);
  /// The launch behind the one that was read last.
  /// \throws std::system_error  ENODATA: there is no further one.
  PastLaunch read_next();

  [[nodiscard]] int fd() const { return file_.get(); }  ///< -1: nothing was appended yet

 private:
  Fd file_;
  std::uint64_t written_ = 0;
  std::uint64_t read_ = 0;
};

/// The launches of this program so far, for ranks that execute it again and repeat them. One thread at a time.
class PastLaunches {
 public:
  /// The number of the next one: 1, 2, 3, …
  [[nodiscard]] int next() const { return count_ + 1; }

  /// The descriptor of the LaunchHistory that ranks read; -1: there are no kept launches.
  /// \throws lrun::Error  one could not be kept, and such ranks would take another path; names the reason.
  [[nodiscard]] int history() const;

  /// Runs the next one, and keeps its result or exception.
  /// \param keeps  false: the program is not executed again; only the number is noted.
  std::string record(bool keeps, const std::function<std::string()>& launch);

  /// In a rank: repeats the outcome of the next one in `history`. \return its result. \throws its exception.
  std::string replay(LaunchHistory& history);

 private:
  void keep(const PastLaunch& outcome);

  int count_ = 0;
  LaunchHistory history_;
  std::string loss_;  // why one could not be kept; empty: all were
};

}  // namespace lrun::detail
