#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lrun::launcher {

/// The leader's state, published so that another launcher can lead the job from there. Not the State of a Job.
struct JobState {
  int round = 0;                            ///< the last that has begun
  int attempt = 0;                          ///< restarts used so far
  std::string history = {};                 ///< of the attempts, as in kReady
  std::string run_id = {};                  ///< as Membership::run_id; empty: no round has begun
  std::string leader = {};                  ///< the token of the last leader
  std::vector<std::string> members = {};    ///< tokens of those in the round
  std::optional<std::string> outcome = {};  ///< the job is over: its outcome, empty when it succeeded

  bool operator==(const JobState&) const = default;
};

std::string to_json(const JobState& state);

/// The same, without the members where they are too many for an etcd: the next leader then waits a heartbeat for any
/// launcher.
std::string json_for_etcd(JobState state);

/// Empty for what is not JSON, lacks a field, or holds a value out of its range.
std::optional<JobState> job_state_from_json(std::string_view json);

}  // namespace lrun::launcher
