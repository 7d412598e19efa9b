#pragma once

#include <optional>
#include <string>

#include "base/environment.h"
#include "base/event_loop.h"
#include "plan/launch_plan.h"
#include "process/guard.h"
#include "rendezvous/job.h"
#include "report/head_channel.h"

namespace lrun::launcher {

/// What a launcher that is to meet others came to.
struct MeetingEnd {
  std::optional<Membership> membership;  ///< the job begins
  std::string why_not;                   ///< else, in words; empty when somebody stopped lrun
  std::string hint;                      ///< what to do about it; empty: the usual
  int signal_number = 0;                 ///< that somebody sent
  std::string report;       ///< the job has ended before it began, because of a node that cannot start: its report
  bool not_needed = false;  ///< the job has ended without this node; `why_not`: how, empty when it succeeded

  bool operator==(const MeetingEnd&) const = default;
};

/// For launchers that the head of a run on several hosts told where to meet: it knows the addresses of ssh's
/// connections.
inline constexpr const char* kOtherPlaceHint =
    "where ssh goes another way than the workers (a jump host), '--master-addr' says where the first host is reached";

/// What this node says about itself to the other launchers.
/// \param program     as the user typed it
/// \param is_managed  whoever starts the launchers says where they meet: only those of one job come there, and each may
///                    have been given a program of its own
/// \throws UserError  --local-addr cannot be resolved.
JoinRecord join_record_of(const LaunchPlan& plan, const std::string& program, bool is_managed);

/// LRUN_JOB_SECRET, which all launchers of a job share; empty: there is none.
std::string job_secret(const Environment& environment);

/// That, or a new one where there is none, for launchers that one lrun starts: 64 hexadecimal digits.
std::string job_secret_or_new(const Environment& environment);

/// LRUN_ETCD_USER, NAME:PASSWORD for an etcd that asks for them; empty: it does not.
std::string etcd_user(const Environment& environment);

/// LRUN_OUTCOME_TOKEN, under which the lrun that started a step's launchers waits for what their job comes to; empty:
/// none does.
std::string outcome_token(const Environment& environment);

/// Takes these out of this process's own environment: neither a program that lrun starts nor who reads
/// /proc/PID/environ finds them any more.
void hide_secrets();

/// What to say about a secret where a network leads to who knows it: there is none, or it is found by trying. Empty:
/// nothing.
std::string warning_of_strangers(const std::string& secret);

/// Prints that line when this launcher can be reached over a network.
void warn_of_strangers(const Job& job, const std::string& secret, MessageSink& sink);

/// Waits until somebody listens there, who is to hold a rendezvous in which this run takes no part: see
/// endpoint_of_others(). For before anything is started, with nobody's signals blocked.
/// \param endpoint  with its port
/// \param patience  empty: a minute, as with torchrun
/// \throws UserError  nobody is there
void wait_for_others_at(const Endpoint& endpoint, std::optional<Duration> patience, MessageSink& sink);

/// Runs the loop until the job begins, fails, or a signal asks for the end. Prints who is missing.
MeetingEnd meet(EventLoop& loop, Job& job, const LaunchPlan& plan, const Guard& guard, const LauncherOutput& output);

/// This node is done with the job. Where the meeting is held here, runs the loop until the other nodes are done, too,
/// or a signal asks for the end; after a while it prints what lrun waits for.
/// \param text  what the job came to, where that has not been said yet; empty: it succeeded
/// \param ignored  a signal that asks for nothing here: one that was heard before; 0: none
void leave(EventLoop& loop, Job& job, const std::string& text, const LaunchPlan& plan, const Guard& guard,
           MessageSink& sink, int ignored = 0);

}  // namespace lrun::launcher
