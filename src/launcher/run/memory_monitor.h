#pragma once

#include <cstdint>
#include <optional>

#include "base/event_loop.h"
#include "copies/folder_watch.h"
#include "plan/setting.h"
#include "plan/worker_setup.h"
#include "process/memory_folder.h"
#include "report/message_sink.h"

namespace lrun::launcher {

/// Warns once when what workers keep in the run's folder in memory is more than --memory-dir allows, of its first ten
/// thousand files. The first sixteen folders are watched. Nothing is removed: no file system lets an ordinary user
/// limit a folder, and what a program saved is worth more than a limit. A look comes a second after a change; the first
/// one decides about the default limit. One thread.
class MemoryMonitor {
 public:
  /// `folder` may be empty, and is read where it is, as is `sink`: both must outlive this.
  MemoryMonitor(EventLoop& loop, const MemoryFolder& folder, const Setting<MemoryLimit>& limit, MessageSink& sink);
  MemoryMonitor(const MemoryMonitor&) = delete;
  MemoryMonitor& operator=(const MemoryMonitor&) = delete;

 private:
  void look();

  EventLoop& loop_;
  const MemoryFolder& folder_;
  MessageSink& sink_;
  std::optional<std::uint64_t> limit_;  ///< in bytes; empty before a look
  std::optional<FolderWatch> watch_;    ///< empty: nothing is watched
  EventLoop::Timer look_;
};

}  // namespace lrun::launcher
