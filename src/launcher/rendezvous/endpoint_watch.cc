#include "rendezvous/endpoint_watch.h"

#include <chrono>
#include <utility>

namespace lrun::launcher {
namespace {

constexpr Duration kPauseOfLooks(300);
constexpr Duration kAttempt(500);
/// Name services cache answers for longer: a launcher at a new address is found hardly later.
constexpr Duration kRemembered(5000);

}  // namespace

EndpointWatch::EndpointWatch(EventLoop& loop, LauncherLink::Options endpoint, int round, Answered answered)
    : loop_(loop), endpoint_(std::move(endpoint)), answered_(std::move(answered)), name_(endpoint_.host) {
  endpoint_.connect = Duration::zero();  // one attempt, so that each look is at the address of that time
  endpoint_.attempt = kAttempt;
  endpoint_.invites_to = round;
  look();
}

void EndpointWatch::look() {
  if (endpoint_.host == name_) looked_up_ = steady_now();
  link_.emplace(loop_, endpoint_,
                LauncherLink::Events{
                    .received = [this](const LauncherMessage& answer) { answered_(answer, link_->server_address()); },
                    .broken = [this](const std::string&, const std::string&) { broken(); }});
}

/// A host that refuses the connection is at this address. Any other trouble may come from an address that it has no
/// longer.
void EndpointWatch::broken() {
  const bool is_known = link_->was_refused() && steady_now() - looked_up_ < kRemembered;
  endpoint_.host = is_known ? link_->found_address() : name_;
  again_ = loop_.after(kPauseOfLooks, [this] { look(); });
}

}  // namespace lrun::launcher
