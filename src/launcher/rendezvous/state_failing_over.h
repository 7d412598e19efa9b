#pragma once

#include <string>

#include "base/event_loop.h"
#include "rendezvous/port_probe.h"
#include "rendezvous/successor_search.h"

namespace lrun::launcher {

class JobContext;

/// State of a Job without an etcd: the leader of its round is lost, and the members choose the next one. This launcher
/// joins a successor, or leads where its turn comes. Ends with the next round.
class FailingOver {
 public:
  /// \param closed  the host of the lost leader closed the connection; else it is silent
  FailingOver(JobContext& context, bool closed);

  /// Reports the loss and enters this state.
  static void leader_lost(JobContext& context, const std::string& why);

  void link_joined();
  void link_broken(const std::string& why, const std::string& hint);

 private:
  void follow(const SuccessorSearch::Step& step);
  void lead(const Ballot& ballot);
  void stop_serving();
  void give_up(const std::string& why);

  JobContext& context_;
  SuccessorSearch search_;
  PortProbe probe_;
  EventLoop::Timer step_;
  EventLoop::Timer limit_;
};

}  // namespace lrun::launcher
