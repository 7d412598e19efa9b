// In: folders. Out: a call after the first change in any of them. Used by MemoryMonitor and CopySender.
#include "copies/folder_watch.h"

#include <fcntl.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include "base/own_signals.h"
#include "process/signal_set.h"

namespace lrun::launcher {

FolderWatch::FolderWatch(EventLoop& loop, std::size_t most, std::function<void()> changed) : most_(most) {
  const int signal_number = folder_changed_signal();
  const sigset_t blocked = signal_set({signal_number});
  ::sigprocmask(SIG_BLOCK, &blocked, nullptr);
  changes_.emplace(loop, std::vector<int>{signal_number},
                   [call = std::move(changed)](const ReceivedSignal&) { call(); });
}

bool FolderWatch::add(const char* path) {
  if (folders_.size() >= most_) {
    errno = EMFILE;
    return false;
  }
  Fd folder(::open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  const unsigned changes = DN_CREATE | DN_MODIFY | DN_RENAME | DN_DELETE;
  if (!folder || ::fcntl(folder.get(), F_NOTIFY, static_cast<long>(changes)) != 0) return false;
  folders_.push_back(std::move(folder));
  return true;
}

}  // namespace lrun::launcher
