#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace lrun::test {

/// What happens to one launcher of a job, `after` the deed before it.
struct JobDeed {
  enum class Kind {
    kStart,         ///< it joins, as a new launcher where one of its number ran before
    kKillAll,       ///< kill -9 of both of its processes
    kKillGuard,     ///< ... of the outer one
    kKillLauncher,  ///< ... of the inner one
    kKillWorker,    ///< ... of one of its workers
    kTerminate,     ///< SIGTERM: a scheduler takes the node away
    kStopLauncher,  ///< SIGSTOP to both of its processes: it is silent, and its workers go on
    kStopNode,      ///< ... to the workers, too
    kContinue,
    kCut,             ///< between it and the meeting nothing arrives
    kCutToMeeting,    ///< it is not heard
    kCutFromMeeting,  ///< it does not hear
    kHeal,
  };

  Kind kind = Kind::kStart;
  int launcher = 0;
  std::chrono::milliseconds after{0};

  bool operator==(const JobDeed&) const = default;
};

/// A job of several launchers and what happens to them. A value that follows from its seed alone.
struct JobPlan {
  std::string backend;
  int launchers = 2;  ///< 0 holds the meeting
  int least = 1;
  int most = 2;
  int workers = 1;  ///< of each launcher
  int max_restarts = 0;
  std::vector<bool> late;       ///< started by a deed
  bool begins_at_once = false;  ///< the deeds do not wait for the first step of the training
  std::vector<JobDeed> deeds;
  std::chrono::milliseconds goes_on_for{0};  ///< after the last of them
  bool heals = true;                         ///< at the end, when also who stands still goes on

  bool operator==(const JobPlan&) const = default;
};

/// The plan with this number among those of a seed. Pure.
JobPlan make_job_plan(std::uint64_t seed, int number);

/// What a person needs to see of it, on several lines.
std::string to_text(const JobPlan& plan);

/// It, or its network, stands still or is killed at some time: what it comes to may differ from the others' end.
bool is_disturbed(const JobPlan& plan, int launcher);
bool has_deed(const JobPlan& plan, JobDeed::Kind kind);

}  // namespace lrun::test
