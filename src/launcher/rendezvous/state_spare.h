#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "rendezvous/membership.h"

namespace lrun::launcher {

class JobContext;

/// State of a Job without an etcd: it runs elsewhere, and this launcher waits for a place in a round. Where the leader
/// is lost the spare has no vote: it turns to the leader and its successors until one of them leads and takes it in.
class WaitingAsSpare {
 public:
  /// \param line  where the leader is, and then its successors; not empty
  WaitingAsSpare(JobContext& context, std::vector<Successor> line) : context_(context), line_(std::move(line)) {}

  void link_joined();
  void link_broken(const std::string& why, const std::string& hint);
  [[nodiscard]] const std::vector<Successor>& line() const { return line_; }

 private:
  JobContext& context_;
  std::vector<Successor> line_;
  std::size_t tried_ = 0;  ///< so many, since the leader was lost
  EventLoop::Timer next_;
  EventLoop::Timer limit_;
};

}  // namespace lrun::launcher
