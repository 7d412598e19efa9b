#include "runtime/launch/error_relay.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <string>

#include "base/fd.h"
#include "runtime/launch/rank_errors.h"

namespace lrun::detail {
namespace {

std::string read_all_there(int fd) {
  std::string text;
  char bytes[4096];
  for (ssize_t count = 0; (count = ::read(fd, bytes, sizeof bytes)) > 0;)
    text.append(bytes, static_cast<std::size_t>(count));
  return text;
}

TEST(ErrorRelay, NeverBlocksAndLosesNothing) {
  EventLoop loop;
  Pipe errors = make_pipe();
  set_nonblocking(errors.read.get());
  ErrorRelay relay(loop, errors.write.get());
  const std::string text(200'000, 'x');  // more than a pipe holds
  relay.write(text);
  EXPECT_TRUE(relay.blocked());
  relay.write("end");
  relay.on_room([&] { loop.stop(); });
  std::string got;
  const auto reader = loop.on_readable(errors.read.get(), [&] { got += read_all_there(errors.read.get()); });
  const auto limit = loop.after(std::chrono::seconds(60), [&] { loop.stop(); });
  loop.run();
  got += read_all_there(errors.read.get());
  EXPECT_FALSE(relay.blocked());
  EXPECT_EQ(got.size(), text.size() + 3);
  EXPECT_TRUE(got.ends_with("xend"));
  EXPECT_EQ(::fcntl(errors.write.get(), F_GETFL) & O_NONBLOCK, 0) << "others share this description";
}

TEST(ErrorRelay, SwallowsWhatNobodyReads) {
  EventLoop loop;
  Pipe errors = make_pipe();
  errors.read.reset();
  ErrorRelay relay(loop, errors.write.get());
  const auto before = ::signal(SIGPIPE, SIG_IGN);
  relay.write(std::string(200'000, 'x'));
  ::signal(SIGPIPE, before);
  EXPECT_FALSE(relay.blocked());
}

bool has_room(int fd) {
  pollfd writable{fd, POLLOUT, 0};
  return ::poll(&writable, 1, 0) != 0;
}

TEST(RankErrors, AreNotReadWhileTheRelayHasNoRoom) {
  EventLoop loop;
  Pipe console = make_pipe();
  set_nonblocking(console.read.get());
  ErrorRelay relay(loop, console.write.get());
  RankErrors errors(relay);
  relay.on_room([&] { errors.resume(); });
  const Fd rank(::dup(errors.rank_end()));
  set_nonblocking(rank.get());
  errors.begin(loop);
  std::size_t written = 0;
  const std::string part(4096, 'x');
  // The rank writes whenever it can; it must come to a halt, with bounded bytes on their way.
  auto writer = loop.on_writable(rank.get(), [&] {
    const ssize_t count = ::write(rank.get(), part.data(), part.size());
    if (count > 0) written += static_cast<std::size_t>(count);
    if (written > 10'000'000) loop.stop();
  });
  EventLoop::Timer quiet;
  std::size_t before = 0;
  const std::function<void()> look = [&] {
    if (relay.blocked() && !has_room(rank.get()) && written == before) return loop.stop();
    before = written;
    quiet = loop.after(std::chrono::milliseconds(50), look);
  };
  look();
  auto limit = loop.after(std::chrono::seconds(60), [&] { loop.stop(); });
  loop.run();
  EXPECT_TRUE(relay.blocked());
  EXPECT_FALSE(has_room(rank.get())) << "the rank goes on after " << written << " bytes";
  EXPECT_LT(written, 10'000'000U) << "read into memory without bound";
  writer.cancel();
  std::string got;
  const auto reader = loop.on_readable(console.read.get(), [&] {
    got += read_all_there(console.read.get());
    if (got.size() == written) loop.stop();
  });
  limit = loop.after(std::chrono::seconds(60), [&] { loop.stop(); });
  loop.run();
  EXPECT_EQ(got.size(), written) << "all of it follows";
}

}  // namespace
}  // namespace lrun::detail
