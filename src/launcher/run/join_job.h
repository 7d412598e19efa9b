#pragma once

#include <memory>
#include <optional>
#include <string>
#include <system_error>

#include "base/environment.h"
#include "base/event_loop.h"
#include "plan/launch_plan.h"
#include "process/guard.h"
#include "rendezvous/job.h"
#include "report/head_channel.h"
#include "run/notice_monitor.h"
#include "run/waiting_record.h"

namespace lrun::launcher {

/// The outcome of the wait for the other launchers of a job.
struct RendezvousOutcome {
  std::optional<Membership> membership;  ///< the job begins
  std::string why_not;      ///< why the job does not begin; where lrun was stopped: who was missing, or empty
  std::string hint;         ///< what to do about it; empty: the usual hint
  int signal_number = 0;    ///< the signal that stopped lrun; 0: none did
  std::string notice = {};  ///< that this machine is about to go, which stopped lrun as SIGTERM does; empty: none
  std::string report;       ///< report of a node that cannot start, and so ended the job before it began; empty: none
  bool not_needed = false;  ///< the job ended without this node; `why_not`: how, empty: it succeeded
  bool tells = false;       ///< this launcher is one to say why the job does not begin
  /// Of the wait, where the job does not begin and this launcher is one to tell it later; nullptr: others do, or it did
  /// not last.
  std::unique_ptr<WaitingRecord> record = {};

  bool operator==(const RendezvousOutcome&) const = default;
};

/// A hint for launchers that got their rendezvous address from the head of a run on several hosts, which derives it
/// from ssh's connections.
inline constexpr const char* kOtherPlaceHint =
    "where ssh goes another way than the workers (a jump host), '--master-addr' says where the first host is reached";

/// The description of this node that the other launchers get.
/// \param program     as the user typed it
/// \param is_managed  the endpoint comes from what starts the launchers: only those of one job come there, and each may
///                    have been given a program of its own
/// \throws UserError  --local-addr cannot be resolved.
JoinRecord join_record_of(const LaunchPlan& plan, const std::string& program, bool is_managed);

/// LRUN_JOB_SECRET, which all launchers of a job share; empty: not set.
std::string job_secret(const Environment& environment);

/// job_secret(), or where it is empty a new secret of 64 hexadecimal digits, for launchers that one lrun starts.
std::string job_secret_or_new(const Environment& environment);

/// LRUN_ETCD_USER, NAME:PASSWORD for an etcd with authentication; empty: not set.
std::string etcd_user(const Environment& environment);

/// LRUN_OUTCOME_TOKEN, under which the lrun that started a step's launchers waits for the outcome of their job; empty:
/// no lrun waits.
std::string outcome_token(const Environment& environment);

/// Erases these variables from this process's environment, so that programs that lrun starts and readers of
/// /proc/PID/environ do not find them.
void hide_secrets();

/// A warning about a missing or guessable secret, for a launcher that can be reached over a network. Empty: the secret
/// is strong.
/// \param place  where it can be reached: 'h1:15599'
std::string weak_secret_warning(const std::string& secret, const std::string& place);

/// Prints that line when this launcher can be reached over a network.
void warn_of_weak_secret(const Job& job, const LaunchPlan& plan, const std::string& secret, MessageSink& sink);

/// Waits until something listens at `endpoint`, which has a port. \return why nothing does.
std::error_code wait_for_server(const Endpoint& endpoint, Duration patience);

/// Waits until something listens at the endpoint of a rendezvous in which this run takes no part: see
/// endpoint_of_others(). To be called before anything is started, with no signals blocked.
/// \param endpoint  with its port
/// \param patience  empty: a minute, as with torchrun
/// \throws UserError  nothing listens there in that time
void wait_for_others_at(const Endpoint& endpoint, std::optional<Duration> patience, MessageSink& sink);

/// Runs the loop until the job begins, fails, or a signal or a notice asks for the end. Prints which nodes are missing,
/// and `lrun status` shows it. \param notice  of --notice; nullptr: nobody looks for one
RendezvousOutcome meet(EventLoop& loop, Job& job, const LaunchPlan& plan, const Guard& guard,
                       const Environment& environment, const LauncherOutput& output, NoticeMonitor* notice);

/// Leaves the job. On the leader, runs the loop until the other nodes are done, too, or a signal asks for the end;
/// after a while it prints what lrun waits for. \param text  how the job ended, where the other nodes were not told;
/// empty: it succeeded \param ignored  a signal that was received before and asks for nothing new; 0: none
void leave(EventLoop& loop, Job& job, const std::string& text, const LaunchPlan& plan, const Guard& guard,
           MessageSink& sink, int ignored = 0);

}  // namespace lrun::launcher
