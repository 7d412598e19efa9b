#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/fd.h"
#include "copies/copy_connection.h"
#include "copies/received_files.h"
#include "rendezvous/membership.h"

namespace lrun::launcher {

/// The names of the folders of copies begin with it.
inline constexpr const char* kCopyPrefix = "copies-";

/// Keeps copies of other nodes' files in memory, and gives those of a lost node to the nodes that ask for them.
///
/// The leader says whose neighbour this node is. The copies of a node of which it is no more are there for one round,
/// for those who ask, and go when the next one begins: by then the job has gone on without them. One thread.
class CopyKeeper {
 public:
  struct Facts {
    std::string outer;                        ///< the folder in which they are kept
    std::optional<std::uint64_t> most_bytes;  ///< empty: default_memory_limit()
    std::string secret;                       ///< that others have to know, with the key of this node
  };

  /// \param listener  a listening socket, which must outlive this
  /// \param changed   gets the owners of complete copies that are to be offered, whenever they change
  CopyKeeper(EventLoop& loop, int listener, Facts facts,
             std::function<void(const std::vector<FileOwner>& owners)> changed);

  /// A round begins. `owners`: the nodes whose neighbour this one is.
  void enter(const std::vector<FileOwner>& owners);

 private:
  struct Kept {
    int node_rank = 0;
    std::unique_ptr<ReceivedFiles> files;
    std::uint64_t client = 0;  ///< that sends them; 0: none
    bool is_complete = false;  ///< a commit of all files has come
    bool is_ours = false;      ///< this node is its neighbour in this round
    bool was_taken = false;    ///< by a node
  };
  struct Client {
    std::unique_ptr<CopyConnection> connection;
    std::string owner;              ///< whose files it sends; empty: it sends none
    std::string wants;              ///< whose files it has asked for
    std::vector<std::string> left;  ///< those of them that are to be sent
    bool needs_all = true;          ///< changes alone do not count
    std::string refusal;            ///< of the files that come; empty: they are taken
    std::size_t files = 0;          ///< in the commit that comes
    std::uint64_t most_bytes = 0;   ///< of all copies, in that commit; 0: it has no file yet
    EventLoop::Timer limit;         ///< until it says what it wants
  };

  void listen();
  void accept();
  void received(std::uint64_t id, const CopyItem& item);
  void take(std::uint64_t id, const CopyMessage& message);
  void begin_owner(std::uint64_t id, const CopyMessage& message);
  void begin_file(Client& client, Kept& kept, const CopyMessage& message);
  static void refuse(Client& client, Kept& kept, std::string why);
  void commit(Client& client, Kept& kept, bool is_all);
  void give(Client& client, const std::string& token);
  void give_some(Client& client);
  void taken(const std::string& token);
  void drop(const std::string& token);
  void close(std::uint64_t id);
  void report();
  [[nodiscard]] Kept* files_of(std::uint64_t id, const Client& client);
  [[nodiscard]] std::uint64_t most_bytes() const;
  [[nodiscard]] std::uint64_t bytes_but(const Kept& one) const;

  EventLoop& loop_;
  int listener_;
  Facts facts_;
  std::function<void(const std::vector<FileOwner>& owners)> changed_;
  std::map<std::string, Kept> kept_;  ///< by token
  std::map<std::uint64_t, Client> clients_;
  std::uint64_t last_id_ = 0;
  std::vector<FileOwner> reported_;
  EventLoop::Watch acceptable_;
  EventLoop::Timer pause_;  ///< of accepting, where no descriptor is left
};

}  // namespace lrun::launcher
