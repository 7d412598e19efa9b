#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/duration.h"
#include "base/event_loop.h"
#include "copies/copy_connection.h"
#include "copies/folder_watch.h"
#include "copies/saved_files.h"
#include "store/socket_connector.h"

namespace lrun::launcher {

/// Keeps the neighbour's copies of this node's files in memory up to date: sends what changed, a moment after it did.
/// All that has changed by then comes in one commit. Connects again when the connection is lost. One thread.
class CopySender {
 public:
  struct Facts {
    std::string outer;   ///< the folder that the files' folder is in, which is there
    std::string folder;  ///< of the files
    std::string token;   ///< of this node, as in its JoinRecord
    std::string secret;  ///< of the job; empty: none
  };

  /// \param warn  gets the reason, once, why the neighbour has no copies
  CopySender(EventLoop& loop, Facts facts, std::function<void(const std::string& why)> warn);

  /// Where the neighbour's copier is; port 0: there is no neighbour.
  struct Neighbour {
    std::string address;
    int port = 0;
    std::string key;  ///< that it asks for, behind the secret of the job

    bool operator==(const Neighbour&) const = default;
  };

  /// A round begins.
  void enter(Neighbour neighbour);

 private:
  void connect();
  void connected(SocketConnector::Result result);
  void received(const CopyItem& item);
  void try_again(const std::string& why);
  void warn(const std::string& why);
  void look_soon();
  void look();
  void send_changes(const SavedFiles& now);
  void forget();
  void sent();

  EventLoop& loop_;
  Facts facts_;
  std::function<void(const std::string& why)> warn_;
  FolderWatch watch_;
  SocketConnector connector_;
  std::unique_ptr<CopyConnection> connection_;
  Neighbour neighbour_;
  SavedFiles kept_;               ///< as the neighbour has them, or will once what was sent has arrived
  bool was_there_ = false;        ///< the neighbour was reached
  bool knows_all_ = false;        ///< the neighbour has had a commit of all files
  bool is_late_ = false;          ///< something changed while files were sent
  bool has_uncommitted_ = false;  ///< files were sent, and more follow before the commit
  Duration delay_;                ///< from a change to the look at it
  Duration until_closed_;         ///< to the next look at files that are being written
  Duration pause_;                ///< before the next attempt to connect
  EventLoop::Timer look_;
  EventLoop::Timer later_look_;  ///< the one at files that are being written
  EventLoop::Timer again_;
};

}  // namespace lrun::launcher
