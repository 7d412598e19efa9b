#include "base/event_loop.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "base/fd.h"

namespace lrun {
namespace {

using namespace std::chrono_literals;

TEST(EventLoop, CallsBackWhileADescriptorIsReadableAndStopsAfterCancel) {
  EventLoop loop;
  Pipe pipe = make_pipe();
  ASSERT_EQ(::write(pipe.write.get(), "abc", 3), 3);
  std::string seen;
  EventLoop::Watch watch;
  watch = loop.on_readable(pipe.read.get(), [&] {
    char byte = 0;
    ASSERT_EQ(::read(pipe.read.get(), &byte, 1), 1);
    seen += byte;
    if (seen.size() == 3) watch.cancel();
  });
  loop.run();
  EXPECT_EQ(seen, "abc");
}

TEST(EventLoop, ServesReadAndWriteOfOneSocketAtOnce) {
  EventLoop loop;
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
  const Fd ours(ends[0]);
  const Fd theirs(ends[1]);
  bool wrote = false;
  bool read = false;
  EventLoop::Watch writable;
  EventLoop::Watch readable;
  readable = loop.on_readable(ours.get(), [&] {
    read = true;
    readable.cancel();
  });
  writable = loop.on_writable(ours.get(), [&] {
    wrote = true;
    writable.cancel();
    ASSERT_EQ(::write(theirs.get(), "x", 1), 1);
  });
  loop.run();
  EXPECT_TRUE(wrote);
  EXPECT_TRUE(read) << "cancelling one watch must leave the other armed";
}

TEST(EventLoop, ForgetsADescriptorBeforeItsNumberIsReused) {
  EventLoop loop;
  Pipe first = make_pipe();
  const int number = first.read.get();
  EventLoop::Watch stale = loop.on_readable(number, [] { FAIL() << "the first pipe never becomes readable"; });
  stale.cancel();
  first.read.reset();
  Pipe second = make_pipe();
  ASSERT_EQ(second.read.get(), number) << "the kernel gives out the lowest free number";
  ASSERT_EQ(::write(second.write.get(), "x", 1), 1);
  bool called = false;
  EventLoop::Watch watch;
  watch = loop.on_readable(number, [&] {
    called = true;
    watch.cancel();
  });
  loop.run();
  EXPECT_TRUE(called);
}

TEST(EventLoop, ACancelledTimerNeverFiresAndRunReturnsWhenNothingIsArmed) {
  EventLoop loop;
  int fired = 0;
  EventLoop::Timer cancelled = loop.after(1ms, [&] { fired += 100; });
  cancelled.cancel();
  EventLoop::Timer kept = loop.after(1ms, [&] { ++fired; });
  loop.run();
  EXPECT_EQ(fired, 1);
  EXPECT_FALSE(kept.armed());
}

TEST(EventLoop, RefusesARegularFileWithTheReason) {
  EventLoop loop;
  std::FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  EXPECT_THROW((void)loop.on_readable(::fileno(file), [] {}), std::exception);
  std::fclose(file);
}

}  // namespace
}  // namespace lrun
