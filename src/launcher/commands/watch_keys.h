#pragma once

#include "base/duration.h"

namespace lrun::launcher {

/// The keys of a terminal on which a table is drawn again and again: they are not shown, and 'q' ends the watching. The
/// settings of the terminal come back however the process ends or stops, except by SIGKILL. Nothing is changed where
/// stdin is no terminal, or while the process is in the background. One object at a time, in a program of one thread.
class WatchKeys {
 public:
  WatchKeys();
  ~WatchKeys();
  WatchKeys(const WatchKeys&) = delete;
  WatchKeys& operator=(const WatchKeys&) = delete;

  /// Waits between two looks. \return false: 'q' was typed, or nobody reads stdout any more
  bool wait(Duration moment);
};

}  // namespace lrun::launcher
