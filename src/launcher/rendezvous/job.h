#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <utility>

#include "base/event_loop.h"
#include "plan/rendezvous_plan.h"
#include "rendezvous/job_context.h"
#include "rendezvous/job_events.h"
#include "rendezvous/job_member.h"

namespace lrun::launcher {

/// This launcher's part in a job of several nodes: the link to the leader, the rendezvous where this launcher leads,
/// and the workers' store, or the port that is kept for it. Must be the last that uses the loop. One thread.
class Job final : public JobMember {
 public:
  /// Serves the rendezvous if it has to, or if no other launcher on this machine does. Begins to connect.
  ///
  /// With an etcd in the plan one of the launchers is elected leader through it, and again when that one is lost.
  /// Without one a member of the round succeeds it as leader. The new leader invites a launcher that is started again
  /// at the endpoint, which then redirects others to it.
  /// \param record  what is known of this node; the rest is filled in
  /// \param merge  what is made of the reports of a round
  /// \param secret  that all launchers of the job share; empty: none
  /// \param etcd_user  NAME:PASSWORD; empty: none
  /// \throws std::system_error  a port is taken, descriptors ran out.
  Job(EventLoop& loop, const RendezvousPlan& plan, JoinRecord record, MergeReports merge,
      std::size_t max_store_connections, std::string secret = {}, const std::string& etcd_user = {});
  /// `changed` is told the connection by which the others know that this launcher lives, and -1 before it is closed.
  void on_connection(std::function<void(int connection)> changed) { context_.connection_changed = std::move(changed); }
  void set_events(JobEvents& events) override { context_.set_events(events); }
  void set_questions(Questions questions) override { context_.questions = std::move(questions); }
  void ask(const std::string& question) override { context_.send(LauncherMessage::Kind::kAsk, question); }
  void stopping(const std::string& text) override { context_.send(LauncherMessage::Kind::kStopping, text); }
  void report(const std::string& text) override;
  void ready(int attempt, const std::string& history, const std::vector<FileOwner>& keeps) override;
  void drop_out(const std::string& why) override;
  void abandon() override;
  void leave(const std::string& text) override { leave_with(LauncherMessage::Kind::kLeave, text); }
  /// As leave(), where that was not called. A rendezvous that is served here stays until the others are done, too, at
  /// most for `limit`; then `finished` is called by the loop.
  void finish(const std::string& text, Duration limit, std::function<void()> finished);

  /// Connections of launchers that a rendezvous takes at the same time.
  static std::size_t most_launchers(const RendezvousPlan& plan) { return JobServers::most_launchers(plan); }

  /// The workers' store where this node hosts it; else closes it and is null.
  StoreServer* store_for(const Membership& membership) { return context_.servers.store_for(membership); }
  /// A last line to JobEvents::rejected, about launchers that had none of their own.
  void report_rejections() { context_.servers.report_rejections(); }

  [[nodiscard]] bool may_drop_out() const override;
  [[nodiscard]] bool has_successors() const override;
  /// Where other machines can reach the rendezvous that is, or may be, served here: 'h1:15599'. Empty: they cannot.
  [[nodiscard]] std::string open_place() const { return context_.servers.open_place(); }
  [[nodiscard]] ClockOffset clock_offset() const override;
  [[nodiscard]] bool joined() const { return context_.link && context_.link->joined(); }
  /// Which launchers are there, and which are missing; empty: only the leader knows.
  [[nodiscard]] std::string who_is_there() const;
  /// Why the leader could not be reached so far; empty: no attempt has failed.
  [[nodiscard]] std::string last_error() const { return context_.last_error(); }
  /// How long it is tried.
  [[nodiscard]] Duration connect_timeout() const {
    if (context_.election && context_.election->is_refused()) return context_.plan.etcd_start;
    return context_.link && context_.plan.etcd.empty() ? context_.link->connect_timeout()
                                                       : context_.plan.connect_timeout;
  }

 private:
  void leave_with(LauncherMessage::Kind kind, const std::string& text);

  JobContext context_;
  EventLoop::Timer close_;
};

}  // namespace lrun::launcher
