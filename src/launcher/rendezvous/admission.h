#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "rendezvous/join_record.h"
#include "rendezvous/rejoin_backoff.h"

namespace lrun::launcher {

/// Why a launcher may not take part in a job.
struct Rejection {
  std::string why;
  std::string hint = {};  ///< what to do about it; empty: nothing special

  bool operator==(const Rejection&) const = default;
};

/// Why a launcher may not join a job that these have joined; empty: it may.
/// \param runs  the job has begun: a rank that is taken may become free
std::optional<Rejection> rejection_of(const JoinRecord& record, const std::vector<const JoinRecord*>& joined,
                                      bool runs);

/// Its job was given a name. torchrun's 'none' does not count as one.
bool has_name(const JoinRecord& record);

/// The two launchers run different commands: they belong to different jobs.
Rejection another_job(const JoinRecord& record, const JoinRecord& other);

/// 'node 'a' runs 'train.py' and node 'b' 'eval.py''; empty when they run the same, have different roles, or when it is
/// not known.
std::string difference_of_commands(const JoinRecord& record, const JoinRecord& other);

/// The rank that a launcher asked for belongs to another one.
Rejection rank_is_taken(const JoinRecord& record, const JoinRecord& by);

/// Decides which launchers may take part in a job, and keeps a line about each that may not. Pure; a value.
class Admission {
 public:
  /// Why a launcher may not join; empty: it may. \param runs  as in rejection_of()
  [[nodiscard]] std::optional<Rejection> check(const JoinRecord& record, const std::vector<const JoinRecord*>& joined,
                                               bool runs, SteadyTime now) const;

  /// A node has left a round. \return what that means for it: '; it has left the job 5 times within 10m and
  /// may not rejoin for a while'; empty: it may come back at once.
  std::string note_departure(const JoinRecord& record, SteadyTime now);

  /// A line about a launcher that does not take part. \return false: it was noted before, or there are too many.
  bool note(const std::string& line);
  /// The last of these lines: '; node 'b' from 10.0.0.2 (1 worker) was rejected: ...'.
  [[nodiscard]] std::string notes_text() const;

  /// The commands of nodes may differ, but also be those of two jobs with one name. \return a warning, once; else
  /// empty.
  std::string compare_commands(const JoinRecord& record, const JoinRecord& other);

 private:
  RejoinBackoff backoff_;
  std::vector<std::string> notes_;
  bool has_warned_of_commands_ = false;
};

}  // namespace lrun::launcher
