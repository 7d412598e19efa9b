#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/fd.h"

namespace lrun::detail {

/// Shared memory of a launch and its ranks for facts that an exit code cannot carry. A memfd: it has no name, and goes
/// with the last process that has it open.
///
/// Errors  every function throws std::system_error: no memory, not such a board.
class LaunchBoard {
 public:
  /// How far a rank has come.
  enum class Stage : std::uint32_t { kStarted, kReached, kDone, kThrew };

  /// For a launch of `ranks`.
  /// \param history  descriptor of the LaunchHistory of the program, which the supervisor has open, too; -1: none.
  static LaunchBoard create(int ranks, int history = -1);
  /// The board of the launch that started this process.
  static LaunchBoard open(Fd memory);

  [[nodiscard]] int fd() const { return memory_.get(); }
  [[nodiscard]] int ranks() const { return ranks_; }
  [[nodiscard]] int history() const { return history_; }

  void set_stage(int local_rank, Stage stage);
  [[nodiscard]] Stage stage(int local_rank) const;
  /// The text of the exception that the function threw; a long text is cut off at the end.
  void set_error(int local_rank, std::string_view text);
  [[nodiscard]] std::string error(int local_rank) const;

  /// Where the first rank writes what it returns: from here to the end of the memory.
  [[nodiscard]] std::uint64_t result_offset() const;
  void append(std::string_view bytes);
  [[nodiscard]] std::string result() const;

 private:
  LaunchBoard(Fd memory, int ranks, int history) : memory_(std::move(memory)), ranks_(ranks), history_(history) {}

  Fd memory_;
  int ranks_;
  int history_;
};

}  // namespace lrun::detail
