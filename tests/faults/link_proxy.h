#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <thread>

#include "base/fd.h"

namespace lrun::test {

/// The network between one launcher and the rendezvous: a port on loopback whose connections lead to another one, until
/// it is cut. Then nothing arrives and nothing is closed, as with a cable that is pulled. Has a thread of its own.
class LinkProxy {
 public:
  enum class Cut { kNone, kBothWays, kToLeader, kFromLeader };

  /// \param rendezvous  port on loopback; it need not be open yet
  explicit LinkProxy(std::uint16_t rendezvous);
  LinkProxy(const LinkProxy&) = delete;
  LinkProxy& operator=(const LinkProxy&) = delete;
  ~LinkProxy();

  [[nodiscard]] std::uint16_t port() const { return port_; }
  void cut(Cut how) { cut_ = how; }

 private:
  struct Connection {
    Fd launcher;
    Fd rendezvous;
    bool over = false;
  };

  void run();
  void take_connection();

  std::uint16_t rendezvous_;
  std::uint16_t port_ = 0;
  Fd listener_;
  std::atomic<Cut> cut_{Cut::kNone};
  std::atomic<bool> end_{false};
  std::list<Connection> connections_;
  std::thread thread_;
};

}  // namespace lrun::test
