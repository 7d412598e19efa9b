#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "copies/copy_connection.h"
#include "copies/received_files.h"
#include "rendezvous/membership.h"
#include "store/socket_connector.h"

namespace lrun::launcher {

/// Files of a lost node that came, or why they did not.
struct FetchedFiles {
  int node_rank = 0;      ///< of the lost node
  std::size_t files = 0;  ///< that are here now; those whose name was there already are left out
  std::uint64_t bytes = 0;
  std::int64_t newest_ns = 0;  ///< when the last of them was saved, on the wall clock of the lost node
  std::string why_not;         ///< as a clause; empty: all came

  bool operator==(const FetchedFiles&) const = default;
};

/// Gets the files of lost nodes from the nodes that have copies, one after the other. One thread.
class CopyFetcher {
 public:
  struct Facts {
    std::string outer;   ///< the folder that the files' folder is in
    std::string folder;  ///< where they go
    std::string secret;  ///< as CopyConnection has it
  };

  CopyFetcher(EventLoop& loop, Facts facts) : loop_(loop), facts_(std::move(facts)), connector_(loop) {}

  /// \param done  is called by the loop when all have been tried; not where another fetch() comes first
  void fetch(std::vector<LostFiles> lost, std::function<void(const std::vector<FetchedFiles>& all)> done);

 private:
  void next();
  void connected(SocketConnector::Result result);
  void received(const CopyItem& item);
  void finish(const std::string& why_not);
  void wait();

  EventLoop& loop_;
  Facts facts_;
  std::vector<LostFiles> lost_;
  std::function<void(const std::vector<FetchedFiles>& all)> done_;
  std::vector<FetchedFiles> results_;
  SocketConnector connector_;
  std::unique_ptr<CopyConnection> connection_;
  std::unique_ptr<ReceivedFiles> files_;
  EventLoop::Timer silence_;
  EventLoop::Timer turn_;
};

}  // namespace lrun::launcher
