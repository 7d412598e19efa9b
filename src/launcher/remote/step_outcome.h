#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lrun::launcher {

/// srun ends with the highest code of its tasks, and so with 137 where a launcher was killed, whatever the job came to
/// without that node. So the launcher of node rank 0 says the job's code on its stderr, which comes from every node,
/// and the lrun that started srun takes that line out of what the user sees. Rank 0 of an earlier round may end later:
/// it was given up, and its code is not the job's. \param token  that no program knows. \param round  in which this
/// launcher was last
std::string outcome_line(const std::string& token, int round, int code);

/// Finds that line in the bytes of srun's stderr, wherever they were cut. All of one token. A value.
class OutcomeReader {
 public:
  /// \param token  not empty
  explicit OutcomeReader(const std::string& token);

  /// What of these bytes, and of those held back before, is for the user. An outcome_line(), or the beginning of one,
  /// is held back.
  std::string pass_on(std::string_view bytes);
  /// What is held back when nothing more comes.
  std::string rest();
  /// As the line of the newest round said, of several of one round the last; empty: none came.
  [[nodiscard]] const std::optional<int>& code() const { return code_; }

 private:
  std::string mark_;
  std::string held_;
  std::optional<int> code_;
  int round_ = 0;  ///< whose code that is
};

}  // namespace lrun::launcher
