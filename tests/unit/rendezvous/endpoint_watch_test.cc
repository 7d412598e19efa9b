#include "rendezvous/endpoint_watch.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <string>

#include "base/clock.h"
#include "base/fd.h"
#include "launcher_records.h"
#include "store/listening_socket.h"

namespace lrun::launcher {
namespace {

using namespace std::chrono_literals;

/// Its host answers that nobody listens, until it does.
Fd socket_that_refuses() {
  Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  return socket;
}

/// Looks every 300 ms; a name may have moved where it is not refused, and after some seconds.
TEST(EndpointWatch, AsksTheNameServiceRarelyWhereItIsRefused) {
  EventLoop loop;
  const Fd endpoint = socket_that_refuses();
  const Pipe asked = make_pipe();
  set_nonblocking(asked.read.get());
  int questions = 0;
  const auto count = [&] {
    char byte = 0;
    while (::read(asked.read.get(), &byte, 1) == 1) ++questions;
    return questions;
  };
  const SteadyTime begun = std::chrono::steady_clock::now();
  EventLoop::Watch came;
  int visits = 0;
  int asked_before = 0;
  const EventLoop::Timer later = loop.after(1500ms, [&] {
    const auto most = 1 + (std::chrono::steady_clock::now() - begun) / 5s;
    EXPECT_LE(count(), most);
    EXPECT_GE(questions, 1);
    ASSERT_EQ(::listen(endpoint.get(), 1), 0);
    came = loop.on_readable(endpoint.get(), [&] {
      const Fd foreign(::accept4(endpoint.get(), nullptr, nullptr, SOCK_CLOEXEC));  // its end is no answer
      if (++visits == 1) {
        (void)count();
        asked_before = questions;
      } else {
        EXPECT_GT(count(), asked_before) << "what does not answer as a launcher may be at another's address";
        loop.stop();
      }
    });
  });
  const EventLoop::Timer limit = loop.after(60s, [&] {
    ADD_FAILURE() << "it does not look again";
    loop.stop();
  });
  const EndpointWatch watch(loop,
                            {.host = "endpoint.of.the.test",
                             .port = port_of_socket(endpoint.get()),
                             .record = test::node_at("127.0.0.1"),
                             .find_address =
                                 [&asked](const std::string&) {
                                   (void)!::write(asked.write.get(), "a", 1);
                                   return std::string("127.0.0.1");
                                 }},
                            0, [](const LauncherMessage&, const std::string&) {});
  loop.run();
}

}  // namespace
}  // namespace lrun::launcher
