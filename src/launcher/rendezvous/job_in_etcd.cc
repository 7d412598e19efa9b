// A job whose launchers choose the one that holds their meeting, and another when that one is lost; through an etcd.
#include <algorithm>
#include <chrono>
#include <utility>

#include "rendezvous/job.h"

namespace lrun::launcher {
namespace {

constexpr Duration kFirstContact(2000);

EtcdClient::Options etcd_options(const RendezvousPlan& plan, const std::string& user, Duration lease) {
  EtcdClient::Options options;
  for (const Endpoint& endpoint : plan.etcd) {
    options.endpoints.push_back({endpoint.host, static_cast<std::uint16_t>(endpoint.port.value_or(0))});
  }
  options.user = user.substr(0, user.find(':'));
  options.password = user.substr(std::min(user.size(), options.user.size() + 1));
  options.start = plan.etcd_start;
  if (const auto& tls = plan.etcd_tls) {
    options.tls = TlsFiles{.authorities = tls->authorities, .certificate = tls->certificate, .key = tls->key};
  }
  options.attempt = std::max(lease / EtcdElection::kAttemptsPerLease, EtcdElection::kShortestAttempt);
  return options;
}

}  // namespace

void Job::look_in_etcd(const std::string& etcd_user) {
  const Duration lease = std::max(plan_.heartbeat, EtcdElection::kShortestLease);
  election_ = std::make_unique<EtcdElection>(
      loop_,
      EtcdElection::Options{.etcd = etcd_options(plan_, etcd_user, lease),
                            .folder = plan_.etcd_folder,
                            .self = {.token = record_.token, .node = record_.node, .address = record_.address},
                            .lease = lease,
                            .patience = plan_.connect_timeout},
      election_events());
  if (!record_.cannot_start.empty()) election_->only_look();
  election_->look();
}

EtcdElection::Events Job::election_events() {
  return {.open =
              [this](const std::string&) {
                hold_meeting(0, -1);
                return holder_->server().port();
              },
          .close = [this] { holder_.reset(); },
          .found = [this](const LeaderRecord& holder, bool is_self,
                          const std::optional<JobState>& state) { meeting_found(holder, is_self, state); },
          .deposed = [this](const std::string& why) { meeting_taken_away(why); },
          .failed = [this](const std::string& why, const std::string& hint) { election_failed(why, hint); },
          .not_kept =
              [this](const std::string& why) {
                if (events_.not_kept) events_.not_kept(why);
              }};
}

void Job::meeting_found(const LeaderRecord& holder, bool is_self, const std::optional<JobState>& state) {
  if (ended_ && !goodbye_) return;
  election_->set_patience(plan_.replacement);
  where_ = holder.node;
  taken_away_.clear();
  const bool is_over = is_self && state && state->outcome;
  if (is_over && (begun_ || is_spare_)) return job_was_over(*state->outcome);
  if (is_self && state && !is_over) {
    holder_->resume(*state, std::nullopt);
    election_->keep(*state);  // under our lease
  }
  // From here that is where it is, whatever others have to take: an address behind a translation or a firewall.
  open_link(is_self ? own_meeting() : holder.address, holder.port, kFirstContact);
}

/// It ended while we were cut off from it: nobody runs it again. Who comes anew begins a job of the same name.
void Job::job_was_over(const std::string& outcome) {
  ended_ = true;
  stop_looking();
  events_.ended(begun_ && outcome.empty() ? "the job has ended without this node" : outcome);
}

/// What was opened for a vote that is not counted any more goes, too.
void Job::stop_looking() {
  search_limit_.cancel();
  election_->stop();
  holder_.reset();
}

/// The others must not find it any more: what was said last is lost, and nothing is sure that was. Nobody is left for
/// whom we would have to stay.
void Job::meeting_taken_away(const std::string& why) {
  taken_away_ = why;
  holder_.reset();
  if (left_) leave_limit_ = loop_.after(Duration::zero(), [this] { std::exchange(left_, nullptr)(); });
}

void Job::meeting_lost(const std::string& why, const std::string& hint) {
  if (!begun_ && !hint.empty()) {
    ended_ = true;
    return events_.failed(why, hint);
  }
  if ((begun_ || is_spare_) && !search_limit_.armed()) {
    search_limit_ = loop_.after(plan_.replacement, [this] {
      election_failed("nobody holds a meeting after " + format_duration(plan_.replacement) + ": " + trouble(), "");
    });
  }
  if (begun_ && !is_adrift_) tell_adrift(taken_away_.empty() ? why : taken_away_);
  election_->look_again();
}

void Job::election_failed(const std::string& why, const std::string& hint) {
  if (goodbye_) return end_farewell();
  if (std::exchange(ended_, true)) return;
  if (link_) link_->close();
  stop_looking();
  if (begun_ || is_spare_) return events_.ended(why);
  events_.failed(why, hint.empty() ? "'--rdzv-endpoint' names the addresses at which etcd serves its clients" : hint);
}

/// Nobody gathers what the workers of this round came to: each node goes on with what it knows, which is that the
/// round was lost.
void Job::judge_alone() {
  judge_ = loop_.after(Duration::zero(), [this] {
    if (ended_ || !report_) return;
    std::vector<std::string> reports{*std::exchange(report_, std::nullopt)};
    if (membership_.num_nodes > 1) reports.emplace_back();  // the others' are missing
    events_.over(gather_(reports));
  });
}

/// The key goes at once, so that the others need not wait for the end of our lease.
void Job::drop_out(const std::string& why) {
  end_with(LauncherMessage::Kind::kDropOut, why);
  if (!election_ || !holder_) return;
  election_->release(std::nullopt, [] {});
  judge_ = loop_.after(Duration::zero(), [this] { holder_.reset(); });
}

}  // namespace lrun::launcher
