#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rendezvous/join_record.h"

namespace lrun::launcher {

/// Why a launcher may not take part in a job.
struct Rejection {
  std::string why;
  std::string hint = {};  ///< what to do about it; empty: nothing special

  bool operator==(const Rejection&) const = default;
};

/// What speaks against a launcher in a job that these have joined; empty when nothing does.
/// \param runs  the job has begun: a place that is taken may become free
std::optional<Rejection> rejection_of(const JoinRecord& record, const std::vector<const JoinRecord*>& joined,
                                      bool runs);

/// Its job was given a name; that of torchrun's for one without is none.
bool has_name(const JoinRecord& record);

/// That it is of another job than one of these: they run different commands.
Rejection another_job(const JoinRecord& record, const JoinRecord& other);

/// 'node 'a' runs 'train.py' and node 'b' 'eval.py''; empty when they run the same, have different roles, or when it is
/// not known.
std::string difference_of_commands(const JoinRecord& record, const JoinRecord& other);

/// That the rank it asked for is another launcher's.
Rejection rank_is_taken(const JoinRecord& record, const JoinRecord& by);

/// ''b' from 10.0.0.2 (2 workers, node rank 1)'.
std::string in_words(const JoinRecord& record);

/// Who is lost or has come: 'b', or 'b (rank 3)' of several launchers there.
std::string name_of(const JoinRecord& record);

/// What a job has `count` launchers of: 'nodes', or 'ranks' where each of them has one.
std::string unit_of(bool of_ranks, int count);

/// How many nodes a job may have: '2', '2:4'.
std::string nodes_in_words(int least, int most);

}  // namespace lrun::launcher
