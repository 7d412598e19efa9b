#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/answering_child.h"
#include "base/event_loop.h"

namespace lrun::inline core {

/// ask_in_child() for a loop that has to go on meanwhile. Nothing is told any more once this is destroyed, which ends
/// the child. One thread.
class ChildQuestion {
 public:
  /// \param answered  called once, by the loop; may destroy this.
  ChildQuestion(EventLoop& loop, const std::function<std::string()>& question, Duration limit,
                std::function<void(const ChildAnswer&)> answered);
  ChildQuestion(const ChildQuestion&) = delete;
  ChildQuestion& operator=(const ChildQuestion&) = delete;

 private:
  void tell(const ChildAnswer& answer);

  std::optional<AnsweringChild> child_;
  std::function<void(const ChildAnswer&)> answered_;
  EventLoop::Watch readable_;
  EventLoop::Timer limit_;
};

}  // namespace lrun::inline core
