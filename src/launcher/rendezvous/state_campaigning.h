#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/event_loop.h"
#include "rendezvous/etcd_election.h"

namespace lrun::launcher {

class JobContext;

/// State of a Job: it looks for its leader in etcd, or becomes leader through it, until it is linked to that leader.
class Campaigning {
 public:
  explicit Campaigning(JobContext& context);

  /// The election of a job whose launchers meet through etcd. \param etcd_user  NAME:PASSWORD; empty: none
  static std::unique_ptr<EtcdElection> make_election(JobContext& context, const std::string& etcd_user);
  /// The leader is lost, or the one that was found cannot be reached.
  static void leader_lost(JobContext& context, const std::string& why, const std::string& hint);

  void link_joined();
  void link_broken(const std::string& why, const std::string& hint) { leader_lost(context_, why, hint); }

 private:
  static void found(JobContext& context, const LeaderRecord& leader, bool is_self,
                    const std::optional<JobState>& state);
  static void failed(JobContext& context, const std::string& why, const std::string& hint);

  JobContext& context_;
  EventLoop::Timer limit_;  ///< of a launcher that has lost a leader
};

}  // namespace lrun::launcher
