#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lrun::launcher {

/// The line that reports the job's code. srun ends with the highest code of its tasks, and so with 137 where a launcher
/// was killed, also when the job succeeded without that node. So the launcher of node rank 0 writes this line to its
/// stderr, which reaches the lrun that started srun, and that one hides the line from the user. Rank 0 of an earlier
/// round may write its own later: it was given up, and its code is not the job's. \param token  that no program knows
/// \param round  in which this launcher was last
std::string outcome_line(const std::string& token, int round, int code);

/// The line by which the launcher of node rank 0 tells in the same way that all nodes have met.
std::string begun_line(const std::string& token);

/// Finds these lines in the bytes of srun's stderr, however they were cut. A value.
class OutcomeReader {
 public:
  /// \param token  not empty
  explicit OutcomeReader(const std::string& token);

  /// The part of these bytes, and of those held back before, that is for the user. Such a line, or the beginning of
  /// one, is held back.
  std::string pass_on(std::string_view bytes);
  /// The bytes that are held back, at the end of the stream.
  std::string rest();
  /// From the line of the newest round, the last of several; empty: no line came.
  [[nodiscard]] const std::optional<int>& code() const { return code_; }
  /// A begun_line() or an outcome_line() came.
  [[nodiscard]] bool has_begun() const { return begun_ || code_; }

 private:
  std::string mark_;
  std::string held_;
  std::optional<int> code_;
  int round_ = 0;  ///< that the code is of
  bool begun_ = false;
};

}  // namespace lrun::launcher
