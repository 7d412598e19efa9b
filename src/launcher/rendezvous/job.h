#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "base/event_loop.h"
#include "plan/rendezvous_plan.h"
#include "rendezvous/job_context.h"
#include "rendezvous/job_events.h"

namespace lrun::launcher {

/// This launcher's part in a job of several nodes: the link to the leader, the rendezvous where this launcher leads,
/// and the workers' store, or the port that is kept for it. Reports about workers are opaque text to it. Must be the
/// last that uses the loop. One thread.
class Job {
 public:
  /// Serves the rendezvous if it has to, or if no other launcher on this machine does. Begins to connect.
  ///
  /// With an etcd in the plan one of the launchers is elected leader through it, and again when that one is lost.
  /// Without one the members of a round go on under a successor, and invite a launcher that begins to meet at the
  /// endpoint; that one redirects others to them.
  /// \param record  what is known of this node; the rest is filled in
  /// \param gather  what is made of the reports of a round
  /// \param secret  that all launchers of the job share; empty: none
  /// \param etcd_user  NAME:PASSWORD; empty: none
  /// \throws std::system_error  a port is taken, descriptors ran out.
  Job(EventLoop& loop, const RendezvousPlan& plan, JoinRecord record, GatherReports gather,
      std::size_t max_store_connections, std::string secret = {}, const std::string& etcd_user = {});
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  /// `changed` gets the connection by which the others know that this launcher lives, and -1 before it is closed.
  void on_connection(std::function<void(int connection)> changed) { context_.connection_changed = std::move(changed); }
  /// From now on `events` is called. It must live until the next call of this, or as long as the loop runs.
  void set_events(JobEvents& events) { context_.set_events(events); }

  /// The workers of this node are being stopped; the others' are to be, too.
  void stopping(const std::string& text) { context_.send(LauncherMessage::Kind::kStopping, text); }
  /// None of the workers of this node is left.
  void report(const std::string& text);
  /// This node is ready for the next round. Pointers to the last workers' store are void.
  /// \param attempt  restarts used so far
  /// \param history  of the attempts, for nodes that join; the same on all nodes
  void ready(int attempt, const std::string& history);

  /// This node leaves the job, which goes on without it; nothing more is reported. Only where may_drop_out().
  void drop_out(const std::string& why);
  /// As if this launcher were killed: its successors go on with the job. Nothing more is reported. Only where
  /// has_successors().
  void abandon();
  /// This launcher is done with the job; nothing more is reported. `text`: the outcome, empty when the job succeeded.
  void leave(const std::string& text) { leave_with(LauncherMessage::Kind::kLeave, text); }
  /// As leave(), where that was not called. A rendezvous that is served here stays until the others are done, too, at
  /// most for `limit`; then `finished` is called by the loop.
  void finish(const std::string& text, Duration limit, std::function<void()> finished);

  /// Connections of launchers that a rendezvous takes at the same time.
  static std::size_t most_launchers(const RendezvousPlan& plan) { return JobServers::most_launchers(plan); }

  /// The workers' store where this node hosts it; else closes it and is null.
  StoreServer* store_for(const Membership& membership) { return context_.servers.store_for(membership); }
  /// A last line to JobEvents::rejected, about launchers that had none of their own.
  void report_rejections() { context_.servers.report_rejections(); }

  /// The others can go on without this node: it does not lead, or etcd knows another leader.
  [[nodiscard]] bool may_drop_out() const;
  /// This launcher leads, and members of the round go on when it is lost.
  [[nodiscard]] bool has_successors() const;
  /// The rendezvous is, or may be, served here, and other machines can reach it.
  [[nodiscard]] bool is_open_to_network() const { return context_.servers.is_open_to_network(); }
  /// Of the leader; while there is none, of the one that was lost, by whose clock the loss was reported.
  [[nodiscard]] ClockOffset clock_offset() const;
  [[nodiscard]] bool joined() const { return context_.link && context_.link->joined(); }
  /// Why the leader could not be reached so far; empty: no attempt has failed.
  [[nodiscard]] std::string trouble() const { return context_.trouble(); }

 private:
  void leave_with(LauncherMessage::Kind kind, const std::string& text);

  JobContext context_;
  EventLoop::Timer close_;
};

}  // namespace lrun::launcher
