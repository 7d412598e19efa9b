#include "rendezvous/port_owner.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <functional>
#include <future>

#include "coordinator_harness.h"
#include "rendezvous/handshake.h"
#include "rendezvous/rendezvous_server.h"
#include "store/listening_socket.h"
#include "support/patience.h"
#include "wire/connect.h"

namespace lrun::launcher {
namespace {

using test::kPatience;

PortOwner owner_at(std::uint16_t port, const std::string& secret = {}) {
  return owner_of_port("127.0.0.1", port, secret, kPatience);
}

class PortOwnerOfRendezvous : public ::testing::TestWithParam<const char*> {};

TEST_P(PortOwnerOfRendezvous, IsOtherLaunchersWhateverTheirSecret) {
  EventLoop loop;
  RendezvousServer leader(loop, {.reach = StoreReach::kLoopback,
                                 .times = {.join = kPatience, .heartbeat = kPatience},
                                 .merge = test::joined,
                                 .secret = GetParam()});
  std::future<PortOwner> asked =
      std::async(std::launch::async, owner_at, leader.server().port(), std::string("a secret"));
  EventLoop::Timer look;
  std::function<void()> look_again = [&] {
    if (asked.wait_for(Duration(0)) == std::future_status::ready) return loop.stop();
    look = loop.after(Duration(1), look_again);
  };
  look_again();
  loop.run();
  const PortOwner owner = asked.get();
  EXPECT_TRUE(owner.is_rendezvous);
  EXPECT_EQ(owner.who, "other launchers use it");
}

INSTANTIATE_TEST_SUITE_P(Secrets, PortOwnerOfRendezvous, ::testing::Values("", "a secret", "another"));

/// The owner of a port that answers with `words`.
PortOwner owner_that_says(const std::string& words) {
  const Fd listener = open_listening_socket(StoreReach::kLoopback, 0);
  std::future<PortOwner> asked =
      std::async(std::launch::async, owner_at, port_of_socket(listener.get()), std::string());
  EXPECT_TRUE(poll_until(listener.get(), POLLIN, std::chrono::steady_clock::now() + kPatience));
  const Fd socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  EXPECT_EQ(::send(socket.get(), words.data(), words.size(), MSG_NOSIGNAL), static_cast<ssize_t>(words.size()));
  ::shutdown(socket.get(), SHUT_WR);
  return asked.get();
}

TEST(PortOwner, IsWhatTheOtherSaysOfItself) {
  const PortOwner lone = owner_that_says(lone_job_handshake("mine"));
  EXPECT_FALSE(lone.is_rendezvous);
  EXPECT_EQ(lone.who, "it is the workers' store of the job 'mine', which has one node");
  EXPECT_EQ(owner_that_says("SSH-2.0-OpenSSH\r\n").who, "it is not lrun: it sent 'SSH-2.0-OpenSSH' (an SSH server)");
}

TEST(PortOwner, IsNobodyWhoIsKnownWhereNothingIsSaid) {
  EXPECT_EQ(owner_that_says("").who, "");
  const Fd kept = keep_port(StoreReach::kLoopback, 0);
  EXPECT_EQ(owner_at(port_of_socket(kept.get())).who, "") << "nobody listens";
  const Fd silent = open_listening_socket(StoreReach::kLoopback, 0);
  EXPECT_EQ(owner_of_port("127.0.0.1", port_of_socket(silent.get()), "", Duration(1)).who, "");
}

}  // namespace
}  // namespace lrun::launcher
