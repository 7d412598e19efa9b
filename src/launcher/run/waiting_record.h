#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/event_loop.h"
#include "inspect/control_socket.h"
#include "inspect/run_directory.h"

namespace lrun::launcher {

/// Most jobs begin before their wait is worth a record.
inline constexpr Duration kUnseenWait(1000);

/// The record of a launcher that waits for its job, or of a head that waits for its hosts: a folder in which no run has
/// begun, with a control socket. It goes with this. One thread.
class WaitingRecord {
 public:
  /// \param run       the folder of the run that it would be, as RunDirectory has it
  /// \param part      of it, that is this launcher's
  /// \param run_name  of its job (--rdzv-id)
  /// \throws std::system_error  it cannot be made; nothing is left of it.
  WaitingRecord(EventLoop& loop, const std::filesystem::path& run, const std::string& part, const std::string& run_name,
                ControlSocket::Answer answer);
  ~WaitingRecord();
  WaitingRecord(const WaitingRecord&) = delete;
  WaitingRecord& operator=(const WaitingRecord&) = delete;

 private:
  RunDirectory directory_;
  std::optional<ControlSocket> control_;
};

}  // namespace lrun::launcher
