#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/fd.h"

namespace lrun::detail {

/// What came of a launch of this program: what it returned, or what it threw.
struct PastLaunch {
  /// What it returned, or the class of the exception. One that is none of these is its nearest base.
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
  /// The one behind that which was read last.
  /// \throws std::system_error  ENODATA: there is none.
  PastLaunch read_next();

  [[nodiscard]] int fd() const { return file_.get(); }  ///< -1: nothing was appended yet

 private:
  Fd file_;
  std::uint64_t written_ = 0;
  std::uint64_t read_ = 0;
};

/// The launches of this program so far, for ranks that execute it again and come to them, too. One thread at a time.
class PastLaunches {
 public:
  /// The number of the next one: 1, 2, 3, …
  [[nodiscard]] int next() const { return count_ + 1; }

  /// Where ranks find those that were kept: descriptor of a LaunchHistory; -1: there are none.
  /// \throws lrun::Error  one could not be kept, and such ranks would go another way; says why.
  [[nodiscard]] int history() const;

  /// Runs the next one, and keeps what it returned or threw.
  /// \param keeps  false: nobody will execute this program again; only the number is noted.
  std::string record(bool keeps, const std::function<std::string()>& launch);

  /// In a rank: does what the next one in `history` did. \return what it returned. \throws what it threw.
  std::string replay(LaunchHistory& history);

 private:
  void keep(const PastLaunch& outcome);

  int count_ = 0;
  LaunchHistory history_;
  std::string loss_;  // why one could not be kept; empty: all were
};

}  // namespace lrun::detail
