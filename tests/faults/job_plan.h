#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace lrun::test {

/// One deed to a launcher of a job, `after` the deed before it.
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
    kCut,            ///< nothing passes between it and the leader
    kCutToLeader,    ///< its messages do not arrive
    kCutFromLeader,  ///< it receives no messages
    kHeal,
  };

  Kind kind = Kind::kStart;
  int launcher = 0;
  std::chrono::milliseconds after{0};

  bool operator==(const JobDeed&) const = default;
};

/// A job of several launchers and its deeds. A value that follows from its seed alone.
struct JobPlan {
  std::string backend;
  int launchers = 2;  ///< 0 hosts the rendezvous
  int least = 1;
  int most = 2;
  int workers = 1;  ///< of each launcher
  int max_restarts = 0;
  std::vector<bool> late;       ///< started by a deed
  bool begins_at_once = false;  ///< the deeds do not wait for the first step of the training
  std::vector<JobDeed> deeds;
  std::chrono::milliseconds goes_on_for{0};  ///< after the last of them
  bool heals = true;                         ///< at the end, when stopped launchers continue, too

  bool operator==(const JobPlan&) const = default;
};

/// The plan with this number among those of a seed. Pure.
JobPlan make_job_plan(std::uint64_t seed, int number);

/// A description for people, on several lines.
std::string to_text(const JobPlan& plan);

/// It, or its network, is stopped or killed at some time: its outcome may differ from the others'.
bool is_disturbed(const JobPlan& plan, int launcher);
bool has_deed(const JobPlan& plan, JobDeed::Kind kind);

}  // namespace lrun::test
