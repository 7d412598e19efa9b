#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "base/event_loop.h"
#include "base/fd.h"
#include "supervise/signal_source.h"

namespace lrun::launcher {

/// Tells of the first change in some folders: a file in them was made, written, renamed or removed. Where the kernel is
/// without dnotify it tells of nothing.
///
/// inotify, which can tell more, takes milliseconds to be closed: the end of each run would wait for it, and the ports
/// of a killed launcher would be in use until then. At most one of these in a process. One thread.
class FolderWatch {
 public:
  /// \param most  folders; each takes a descriptor
  /// \param changed  called by the loop
  FolderWatch(EventLoop& loop, std::size_t most, std::function<void()> changed);

  /// Watches a folder; those beyond `most` are not watched. \return false, with errno: it is not
  bool add(const char* path);
  /// Watches none any more.
  void clear() { folders_.clear(); }
  [[nodiscard]] bool empty() const { return folders_.empty(); }

 private:
  std::size_t most_;
  std::vector<Fd> folders_;
  std::optional<SignalSource> changes_;
};

}  // namespace lrun::launcher
