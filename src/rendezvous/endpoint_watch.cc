#include "rendezvous/endpoint_watch.h"

#include <utility>

namespace lrun {
namespace {

constexpr Duration kPause(300);
constexpr Duration kAttempt(500);

}  // namespace

EndpointWatch::EndpointWatch(EventLoop& loop, LauncherLink::Options endpoint, int round, Answered answered)
    : loop_(loop), endpoint_(std::move(endpoint)), answered_(std::move(answered)) {
  endpoint_.connect = Duration::zero();  // one attempt
  endpoint_.attempt = kAttempt;
  endpoint_.invites_to = round;
  look();
}

void EndpointWatch::look() {
  link_.emplace(loop_, endpoint_,
                LauncherLink::Events{
                    .received = [this](const LauncherMessage& answer) { answered_(answer, link_->meeting_address()); },
                    .broken = [this](const std::string&,
                                     const std::string&) { again_ = loop_.after(kPause, [this] { look(); }); }});
}

}  // namespace lrun
