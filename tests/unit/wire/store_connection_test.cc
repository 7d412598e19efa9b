#include "wire/store_connection.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/fd.h"
#include "support/patience.h"
#include "support/store_server_thread.h"
#include "wire/connect.h"

namespace lrun {
namespace {

using namespace std::chrono_literals;

/// Both ends of a connection: the second is played by the test.
std::pair<Fd, Fd> connected_pair() {
  int ends[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
  return {Fd(ends[0]), Fd(ends[1])};
}

void write_to(const Fd& end, std::string_view bytes) {
  ASSERT_EQ(::send(end.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
}

/// The answer to the ping of the handshake.
void answer_handshake(const Fd& end) {
  const auto nonce = static_cast<std::uint32_t>(::getpid());
  char bytes[sizeof nonce];
  std::memcpy(bytes, &nonce, sizeof nonce);
  write_to(end, {bytes, sizeof bytes});
}

template <typename Function>
int error_of(const Function& function) {
  try {
    function();
  } catch (const std::system_error& error) {
    return error.code().value();
  }
  return 0;
}

TEST(StoreConnection, SetsChecksAndGets) {
  launcher::StoreServerThread server;
  StoreConnection connection(connect_to("127.0.0.1", server.port(), test::soon()), test::soon());
  EXPECT_FALSE(connection.check("k", test::soon()));
  connection.set("k", std::string(3 << 20, 'v'), test::soon());
  EXPECT_TRUE(connection.check("k", test::soon()));
  EXPECT_EQ(connection.get("k", test::soon()).size(), std::size_t{3} << 20U);
  EXPECT_EQ(connection.get("absent", test::soon()), "");
}

TEST(StoreConnection, GivesUpOnAServerThatDoesNotAnswer) {
  auto [ours, theirs] = connected_pair();
  EXPECT_EQ(error_of([&, &ours = ours] { StoreConnection(std::move(ours), std::chrono::steady_clock::now() + 20ms); }),
            ETIMEDOUT);
}

TEST(StoreConnection, SeesThatTheOtherEndIsNoStore) {
  auto [ours, theirs] = connected_pair();
  write_to(theirs, "SSH-2.0-OpenSSH\r\n");
  EXPECT_EQ(error_of([&, &ours = ours] { StoreConnection(std::move(ours), test::soon()); }), EPROTO);
}

TEST(StoreConnection, RefusesAValueThatIsAnnouncedTooLongAndIsClosedThen) {
  auto [ours, theirs] = connected_pair();
  answer_handshake(theirs);
  StoreConnection connection(std::move(ours), test::soon());
  std::string answer;
  append_number(answer, std::int64_t{1} << 40);
  write_to(theirs, answer);
  EXPECT_EQ(error_of([&] { (void)connection.get("k", test::soon()); }), EPROTO);
  EXPECT_EQ(error_of([&] { connection.set("k", "v", test::soon()); }), ENOTCONN);
}

TEST(StoreConnection, SaysThatTheServerHasGone) {
  auto [ours, theirs] = connected_pair();
  answer_handshake(theirs);
  StoreConnection connection(std::move(ours), test::soon());
  theirs.reset();
  EXPECT_EQ(error_of([&] { (void)connection.get("k", test::soon()); }), EPIPE);
}

}  // namespace
}  // namespace lrun
