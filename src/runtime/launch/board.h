#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.h"

namespace lrun {

/// What came of a launch of this program: what it returned, or what it threw.
struct PastLaunch {
  enum class Outcome : std::uint32_t { kReturned, kWorkersFailed, kUnsupported, kBadEnvironment, kOtherError };

  Outcome outcome = Outcome::kReturned;
  int rank = -1;      ///< of WorkersFailed
  int exit_code = 0;  ///< of WorkersFailed
  std::string bytes;  ///< what the first rank returned (pack()); else the text of the exception

  bool operator==(const PastLaunch&) const = default;
};

/// Memory in which a launch and its ranks tell each other what no exit code tells. A memfd: it has no name, and goes
/// with the last process that has it open.
///
/// Errors  every function throws std::system_error: no memory, not such a board.
class LaunchBoard {
 public:
  /// How far a rank has come.
  enum class Stage : std::uint32_t { kStarted, kReached, kDone, kThrew };

  /// For a launch of `ranks`. `past` are the earlier ones of this program.
  static LaunchBoard create(int ranks, const std::vector<PastLaunch>& past);
  /// The board of the launch that started this process.
  static LaunchBoard open(Fd memory);

  [[nodiscard]] int fd() const { return memory_.get(); }
  [[nodiscard]] int ranks() const { return ranks_; }
  [[nodiscard]] std::vector<PastLaunch> past() const;

  void set_stage(int local_rank, Stage stage);
  [[nodiscard]] Stage stage(int local_rank) const;
  /// What the function threw; the end of a long text is cut off.
  void set_error(int local_rank, std::string_view text);
  [[nodiscard]] std::string error(int local_rank) const;

  /// Where the first rank writes what it returns: from here to the end of the memory.
  [[nodiscard]] std::uint64_t result_offset() const { return result_offset_; }
  void append(std::string_view bytes);
  [[nodiscard]] std::string result() const;

 private:
  LaunchBoard(Fd memory, int ranks, std::uint64_t result_offset)
      : memory_(std::move(memory)), ranks_(ranks), result_offset_(result_offset) {}

  Fd memory_;
  int ranks_;
  std::uint64_t result_offset_;
};

}  // namespace lrun
