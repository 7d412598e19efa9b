#pragma once

#include <optional>
#include <string>

#include "base/event_loop.h"
#include "rendezvous/message.h"

namespace lrun::launcher {

class JobContext;

/// State of a Job that has an etcd and no leader: this launcher is done, but the others do not know that and may be
/// about to begin a round. It looks for their next leader to notify it, for as long as they need to elect one.
class Leaving {
 public:
  Leaving(JobContext& context, LauncherMessage last_message);

  [[nodiscard]] bool has_last_words() const { return last_message_.has_value(); }
  void link_joined();
  void link_broken(const std::string& why, const std::string& hint);
  /// No leader was found in time.
  void give_up();

 private:
  JobContext& context_;
  std::optional<LauncherMessage> last_message_;  ///< empty: our own rendezvous knows it
  bool was_sent_ = false;
  EventLoop::Timer limit_;
};

}  // namespace lrun::launcher
