#include "store/listening_socket.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <barrier>
#include <cerrno>
#include <cstdint>
#include <string>
#include <system_error>
#include <thread>

namespace lrun::launcher {
namespace {

/// Without a second try neither gets it once in some 20,000 times. An address and a port that nobody else asks for.
TEST(ListeningSocket, OfTwoThatAskAtTheSameTimeOneGetsThePort) {
  constexpr int kRounds = 5000;
  const auto port = static_cast<std::uint16_t>(20'000 + ::getpid() % 10'000);
  const std::string address =
      "127.77." + std::to_string(::getpid() / 250 % 250) + "." + std::to_string(::getpid() % 250);
  const auto listener = [&] {
    try {
      return open_listening_socket(StoreReach::kLoopback, port, address);
    } catch (const std::system_error& error) {
      EXPECT_EQ(error.code().value(), EADDRINUSE);
      return Fd();
    }
  };
  std::barrier together(2);
  std::array<Fd, 2> sockets;
  const auto ask = [&](Fd& socket) {
    together.arrive_and_wait();
    socket = listener();
    together.arrive_and_wait();
  };
  std::thread other([&] {
    for (int round = 0; round < kRounds; ++round) ask(sockets[1]);
  });
  for (int round = 0; round < kRounds; ++round) {
    ask(sockets[0]);
    EXPECT_FALSE(sockets[0] && sockets[1]) << "round " << round;
    EXPECT_TRUE(sockets[0] || sockets[1] || !listener()) << "neither got it, and it is free: round " << round;
    for (Fd& socket : sockets) socket.reset();
  }
  other.join();
}

}  // namespace
}  // namespace lrun::launcher
