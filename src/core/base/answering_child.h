#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "base/ask_in_child.h"
#include "base/fd.h"

namespace lrun::inline core {

/// A forked child that answers one question, as ask_in_child() says; whoever owns this waits for it. Move-only; a child
/// that goes on is killed in the destructor.
class AnsweringChild {
 public:
  /// \throws std::system_error  no process or pipe can be made.
  explicit AnsweringChild(const std::function<std::string()>& question);
  ~AnsweringChild();
  AnsweringChild(const AnsweringChild&) = delete;
  AnsweringChild& operator=(const AnsweringChild&) = delete;

  /// Becomes readable when there is more of the answer, or when the child has ended.
  [[nodiscard]] int fd() const { return pipe_.get(); }

  /// To be called when fd() is readable. \return false when there is nothing more to come.
  bool read_some();

  /// Ends the child unless its answer is whole, and takes what came of it. \param in_time  false: its time is over.
  ChildAnswer end(bool in_time);

 private:
  Fd pipe_;
  pid_t child_ = 0;
  std::string text_;
};

}  // namespace lrun::inline core
