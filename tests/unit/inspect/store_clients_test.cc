#include "inspect/store_clients.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <vector>

#include "base/fd.h"

namespace lrun::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

/// A server that accepts nobody: as many as fit into its queue connect, and the others try.
class StoreClients : public ::testing::Test {
 protected:
  StoreClients() : server_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::bind(server_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(server_.get(), 0), 0);
    EXPECT_EQ(::getsockname(server_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
  }

  [[nodiscard]] Fd client() const {
    Fd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const sockaddr_in address = loopback(port_);
    (void)::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
    return client;
  }

  Fd server_;
  int port_ = 0;
};

TEST_F(StoreClients, AreThoseWithAnOpenConnection) {
  EXPECT_THAT(connected_to(port_, {::getpid()}), IsEmpty());
  const Fd own = client();
  EXPECT_THAT(connected_to(port_, {::getpid()}), ElementsAre(::getpid()));
  EXPECT_THAT(connected_to(port_ == 1024 ? 1025 : port_ - 1, {::getpid()}), IsEmpty());
}

TEST_F(StoreClients, AreNotThoseThatTryToConnect) {
  std::vector<Fd> fill;
  for (int i = 0; i < 4; ++i) fill.push_back(client());
  Pipe ready = make_pipe();
  const pid_t child = ::fork();
  if (child == 0) {
    fill.clear();
    const Fd late = client();
    (void)!::write(ready.write.get(), "x", 1);
    ::pause();
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready.read.get(), &byte, 1), 1);
  EXPECT_THAT(connected_to(port_, {::getpid(), child}), ElementsAre(::getpid()));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST_F(StoreClients, AreNotGone) { EXPECT_THAT(connected_to(port_, {1 << 22}), IsEmpty()); }

}  // namespace
}  // namespace lrun::launcher
