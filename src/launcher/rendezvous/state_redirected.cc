// In: the address where the job meets, from a leader, and whether it can be reached. Out: a link to it, or back to the
// endpoint. Entered when a leader answers kRedirect.
#include "rendezvous/state_redirected.h"

#include <utility>

#include "rendezvous/job_context.h"

namespace lrun::launcher {
namespace {

/// For the leader at the target to answer.
constexpr int kHeartbeatsToAnswer = 2;
/// The endpoint may redirect us to the same target again at once.
constexpr Duration kPauseBeforeEndpoint(200);

std::string target_text(const RendezvousAddress& target) {
  return target.address + " port " + std::to_string(target.port);
}

}  // namespace

Redirected::Redirected(JobContext& context, RendezvousAddress target, std::vector<Successor> line)
    : context_(context), target_(std::move(target)), line_(std::move(line)), probe_(context.loop) {
  // Not at once: the link that brought the message is still at work.
  next_ = context.loop.after(Duration::zero(), [this] {
    context_.watch.reset();
    context_.part.known_to_all = false;  // a vote was given: this launcher must not give another one
    if (context_.servers.rendezvous() != nullptr) context_.servers.hand_away();
    go();
  });
}

void Redirected::redirected(JobContext& context, const LauncherMessage& message) {
  if (context.part.has_begun() && !context.part.is_leaderless()) return;
  context.link->close();
  // A loopback address is on the host of the leader that sent it.
  const bool is_beside = is_loopback_address(message.address);
  const RendezvousAddress target{is_beside ? context.link->server_address() : message.address, message.port};
  if (std::exchange(context.told_target, target) != target) {
    context.events->redirected("the job is already running: this node joins it at " + target_text(target));
    if (context.is_over()) return;
  }
  std::vector<Successor> line;
  if (const auto* const spare = std::get_if<WaitingAsSpare>(&context.state)) line = spare->line();
  if (auto* const before = std::get_if<Redirected>(&context.state)) line = std::move(before->line_);
  context.enter<Redirected>(target, std::move(line));
}

bool Redirected::can_ask_again() const { return !context_.part.has_begun() && line_.empty(); }

void Redirected::go() {
  context_.open_link(target_.address, target_.port, kHeartbeatsToAnswer * context_.plan.heartbeat);
}

void Redirected::link_broken(const std::string& why, const std::string& hint) {
  JobContext& context = context_;
  if (can_ask_again()) return ask_endpoint_again(why, false);
  if (context.part.has_begun()) return context.give_up(why, hint);
  context.enter<WaitingAsSpare>(std::vector<Successor>(std::move(line_)));
  std::get<WaitingAsSpare>(context.state).link_broken(why, hint);
}

bool Redirected::sent_back(const std::string& why) {
  if (!can_ask_again()) return false;
  context_.link->close();
  ask_endpoint_again(why, true);
  return true;
}

/// The target may be of no use any more: then the endpoint knows better.
void Redirected::ask_endpoint_again(const std::string& why, bool has_failed) {
  context_.part.is_spare = false;
  if (!context_.servers.owns_endpoint()) {
    next_ = context_.loop.after(kPauseBeforeEndpoint, [&context = context_] {
      context.open_first_link();
      context.enter<Linked>();
    });
  } else if (*context_.servers.redirect() != target_) {
    target_ = *context_.servers.redirect();
    next_ = context_.loop.after(Duration::zero(), [this] { go(); });
  } else if (has_failed) {
    next_ = context_.loop.after(Duration::zero(), [this, why] { gather_here(why); });
  } else {
    // If no process listens at the target any more, this launcher begins as if it were started now.
    const auto port = static_cast<std::uint16_t>(target_.port);
    probe_.ask(target_.address, port, context_.plan.heartbeat / 2, [this, why](bool refused) {
      if (*context_.servers.redirect() != target_) return ask_endpoint_again(why, false);
      if (refused) return gather_here(why);
      context_.give_up(why, "");
    });
  }
}

/// The endpoint is ours again.
void Redirected::gather_here(const std::string& why) {
  JobContext& context = context_;
  context.events->redirected("the rendezvous at " + target_text(target_) + " failed: " + why +
                             "; this node goes back to the job's endpoint");
  if (context.is_over()) return;
  context.told_target.reset();
  context.servers.serve_again();
  context.open_first_link();
  context.enter<Linked>();
}

}  // namespace lrun::launcher
