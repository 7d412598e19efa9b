// A job whose launchers choose the one that holds their meeting through a TCPStore that others serve at the endpoint.
#include <algorithm>
#include <utility>

#include "rendezvous/election_in_store.h"
#include "rendezvous/job.h"

namespace lrun::launcher {
namespace {

constexpr Duration kMostPatience(30'000);
/// For a store to answer twice, and for the launcher that answers the link all the same: together shorter than one of
/// its attempts.
constexpr Duration kToAnswer(1500);
constexpr Duration kToSpeak(1000);

}  // namespace

bool Job::may_look_in_store() const {
  return !plan_.store_key.empty() && !election_ && !begun_ && !is_spare_ && !place_;
}

/// What listens at the endpoint does not answer launchers. It is a store that is no meeting if it answers clients of
/// the store twice and still says nothing to a launcher that had come before them: lrun takes its connections in turn,
/// and may be slow with all of them, but not with the first alone.
void Job::endpoint_unanswered() {
  if (!may_look_in_store() || store_question_ || ended_) return;
  store_question_ = std::make_unique<CompareSetClient>(
      loop_, CompareSetClient::Options{
                 .host = plan_.host, .port = static_cast<std::uint16_t>(plan_.port), .attempt = kToAnswer});
  const auto no_store = [this] { store_silence_ = loop_.after(Duration::zero(), [this] { store_question_.reset(); }); };
  store_question_->read(plan_.store_key, kToAnswer, [this, no_store](const CompareSetClient::Result& first) {
    if (!first.trouble.empty()) return no_store();
    store_question_->read(plan_.store_key, kToAnswer, [this, no_store](const CompareSetClient::Result& second) {
      if (!second.trouble.empty()) return no_store();
      store_silence_ = loop_.after(kToSpeak, [this] {
        store_question_.reset();
        if (may_look_in_store() && !ended_ && link_ && !link_->has_heard()) look_in_store();
      });
    });
  });
}

/// No launcher of the round takes over by itself from here: nobody is to connect to its port in vain.
void Job::look_in_store() {
  link_->close();
  store_silence_.cancel();
  standby_.reset();
  record_.meeting_port = 0;
  is_open_to_network_ = reach_ == StoreReach::kNetwork;
  const Duration lease = std::max(plan_.heartbeat, HolderElection::kShortestLease);
  election_ = std::make_unique<ElectionInStore>(
      loop_,
      ElectionInStore::Options{
          .store = {.host = plan_.host,
                    .port = static_cast<std::uint16_t>(plan_.port),
                    .attempt = std::max(lease / HolderElection::kAttemptsPerLease, HolderElection::kShortestAttempt)},
          .key = plan_.store_key,
          .self = {.token = record_.token, .node = record_.node, .address = record_.address},
          .lease = lease,
          .patience = std::min(plan_.connect_timeout, kMostPatience)},
      election_events());
  begin_election();
}

/// Who comes anew must not begin it again; who was cut off from it hears what it came to.
void Job::found_job_over(const std::string& outcome) {
  if (goodbye_) return end_farewell();
  if (ended_) return;
  if (begun_ || is_spare_) return job_was_over(outcome);
  ended_ = true;
  stop_looking();
  events_.failed("the job '" + record_.run_name + "' is over, and the store at " + plan_.host + " port " +
                     std::to_string(plan_.port) +
                     " keeps its name: " + (outcome.empty() ? "it succeeded" : "it ended with '" + outcome + "'"),
                 "choose another '--rdzv-id'");
}

}  // namespace lrun::launcher
