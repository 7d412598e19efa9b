#pragma once

#include <cstddef>
#include <string_view>

#include "base/fd.h"

namespace lrun::inline core {

/// Writes to a descriptor that other processes share (our stdout or stderr), without ever blocking and without changing
/// it for them: O_NONBLOCK belongs to the open file description, so setting it would surprise the shell.
///
/// A pipe or terminal is opened once more through /proc/self/fd, as a description of our own that does not block; where
/// that is refused (another user's terminal) it is asked before every small write. A socket is asked by flag. A regular
/// file never blocks for long, and is written through the shared description so that its offset stays common.
class ConsoleDescriptor {
 public:
  /// \param fd  belongs to the process and stays as it is; may be closed (every write then says EBADF).
  explicit ConsoleDescriptor(int fd);

  /// Writes a part of `bytes`. \return its size, or minus errno; -EAGAIN: any write would block.
  long write_some(std::string_view bytes);

  [[nodiscard]] bool terminal() const { return terminal_; }
  /// Of a terminal, in characters.
  struct Size {
    int columns = 80;
    int rows = 24;

    bool operator==(const Size&) const = default;
  };
  /// The terminal's size now; 80 x 24 when it does not say.
  [[nodiscard]] Size size() const;
  /// The error means that there is no reader any more, as opposed to a full disk.
  [[nodiscard]] bool means_closed(int error) const;
  /// Both write to the same file, pipe or terminal.
  [[nodiscard]] bool same_as(const ConsoleDescriptor& other) const;
  /// The descriptor to poll for writable after -EAGAIN.
  [[nodiscard]] int pollable() const { return own_ ? own_.get() : fd_; }

 private:
  enum class Way { kNotOpened, kDirect, kOwn, kSocket, kAsk };

  Way open_way();

  int fd_;
  Way way_ = Way::kNotOpened;  ///< found out at the first write: a silent run opens nothing
  Fd own_;                     ///< our own description of a pipe or terminal
  unsigned mode_ = 0;          ///< st_mode; 0: closed
  unsigned long device_ = 0;
  unsigned long inode_ = 0;
  bool terminal_ = false;
};

}  // namespace lrun::inline core
