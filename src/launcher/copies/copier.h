#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/fd.h"
#include "copies/copier_channel.h"
#include "process/forked_helper.h"
#include "store/listening_socket.h"

namespace lrun::launcher {

/// The process that copies this node's files in memory to its neighbour, keeps those of other nodes, and gets those of
/// a lost one. It stands beside the launcher, which is never held up by files or networks. One thread.
class CopierProcess {
 public:
  struct Facts {
    std::string outer;                        ///< the run's folder in memory; copies are kept in it
    std::string folder;                       ///< the workers' folder in it
    std::optional<std::uint64_t> most_bytes;  ///< of copies; empty: default_memory_limit()
    std::string token;                        ///< of this node, as in its JoinRecord
    std::string secret;                       ///< that all launchers of the job share; empty: none
    StoreReach reach = StoreReach::kNetwork;
    std::string address;  ///< at which it listens; empty: as `reach` says
    std::string of;       ///< whose it is, for `ps`: 'process 17, run a'
  };

  /// Opens its port; orders wait until start().
  /// \throws std::system_error  no port or descriptor is left.
  explicit CopierProcess(Facts facts);
  CopierProcess(const CopierProcess&) = delete;
  CopierProcess& operator=(const CopierProcess&) = delete;

  /// Starts it, or starts another one where it has ended. The caller must have one thread.
  /// \throws std::system_error  there is no process or descriptor, or the kernel has no pidfds.
  void start();

  /// At which other nodes' copiers reach it.
  [[nodiscard]] int port() const { return port_; }
  /// That they have to know besides the secret of the job: other users of the hosts, who may connect, do not.
  [[nodiscard]] const std::string& key() const { return key_; }
  /// 0 before start(), and once it has ended.
  [[nodiscard]] pid_t pid() const { return child_ ? child_->pid() : 0; }
  /// Readable when there is news, and at its end.
  [[nodiscard]] int channel() const { return channel_.get(); }

  void tell(const CopierOrder& order) const;
  /// The next news since the last call. Empty: there is none, or the copier has ended. \param has_ended  is set then
  [[nodiscard]] std::optional<CopierNews> next_news(bool& has_ended) const;

 private:
  void open_channel();

  Facts facts_;
  std::string key_;
  Fd listener_;
  Fd theirs_;  ///< the copier's end of the channel, before start()
  int port_ = 0;
  Fd channel_;
  std::optional<ForkedHelper> child_;
};

}  // namespace lrun::launcher
