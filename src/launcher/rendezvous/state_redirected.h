#pragma once

#include <string>
#include <vector>

#include "base/event_loop.h"
#include "rendezvous/membership.h"
#include "rendezvous/port_probe.h"
#include "rendezvous/redirection.h"

namespace lrun::launcher {

class JobContext;

/// State of a Job that meets elsewhere: it goes there, until it is in a round. Where that leads to nothing it looks at
/// the endpoint again, or serves the rendezvous there once more where the endpoint is its own.
class Redirected {
 public:
  /// \param line  of a spare, whom it follows where the target is of no use; else empty
  Redirected(JobContext& context, RendezvousAddress target, std::vector<Successor> line);

  /// A message of the leader. A member of a round that runs does not follow it: its job is here.
  static void redirected(JobContext& context, const LauncherMessage& message);

  void link_joined() {}
  void link_broken(const std::string& why, const std::string& hint);
  /// No round can begin at the target. \return false: this launcher has no other place to look
  bool sent_back(const std::string& why);

 private:
  [[nodiscard]] bool can_ask_again() const;
  void go();
  void ask_endpoint_again(const std::string& why, bool has_failed);
  void gather_here(const std::string& why);

  JobContext& context_;
  RendezvousAddress target_;
  std::vector<Successor> line_;
  PortProbe probe_;
  EventLoop::Timer next_;
};

}  // namespace lrun::launcher
