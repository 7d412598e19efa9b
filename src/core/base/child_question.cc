#include "base/child_question.h"

#include <system_error>
#include <utility>

namespace lrun::inline core {

ChildQuestion::ChildQuestion(EventLoop& loop, const std::function<std::string()>& question, Duration limit,
                             std::function<void(const ChildAnswer&)> answered)
    : answered_(std::move(answered)) {
  try {
    child_.emplace(question);
  } catch (const std::system_error& error) {
    limit_ = loop.after(Duration::zero(), [this, number = error.code().value()] { tell({.error_number = number}); });
    return;
  }
  readable_ = loop.on_readable(child_->fd(), [this] {
    if (!child_->read_some()) tell(child_->end(true));
  });
  limit_ = loop.after(limit, [this] { tell(child_->end(false)); });
}

/// This may be gone afterwards.
void ChildQuestion::tell(const ChildAnswer& answer) {
  readable_.cancel();
  limit_.cancel();
  const auto answered = std::exchange(answered_, nullptr);
  answered(answer);
}

}  // namespace lrun::inline core
