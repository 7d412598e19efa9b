#include "process/descriptor_channel.h"

#include <gtest/gtest.h>
#include <poll.h>

#include "base/fd.h"

namespace lrun {
namespace {

bool has_ended(const Fd& pipe) {
  pollfd end{pipe.get(), POLLIN, 0};
  return ::poll(&end, 1, 0) > 0 && (end.revents & POLLHUP) != 0;
}

TEST(DescriptorChannel, TheOtherEndKeepsOpenWhatWasSentLast) {
  const DescriptorChannel channel;
  Pipe first = make_pipe();
  Pipe second = make_pipe();
  Fd kept;
  channel.receive(kept);
  EXPECT_FALSE(kept) << "nothing was sent";
  ASSERT_TRUE(channel.send(first.write.get()));
  first.write.reset();
  EXPECT_FALSE(has_ended(first.read)) << "it is on its way";
  channel.receive(kept);
  EXPECT_TRUE(kept);
  EXPECT_FALSE(has_ended(first.read));

  ASSERT_TRUE(channel.send(second.write.get()));
  second.write.reset();
  channel.receive(kept);
  EXPECT_TRUE(has_ended(first.read)) << "another one took its place";
  EXPECT_FALSE(has_ended(second.read));

  ASSERT_TRUE(channel.send(-1));
  channel.receive(kept);
  EXPECT_FALSE(kept);
  EXPECT_TRUE(has_ended(second.read));
}

TEST(DescriptorChannel, OfSeveralThatWereSentTheLastIsKept) {
  const DescriptorChannel channel;
  Pipe first = make_pipe();
  Pipe second = make_pipe();
  ASSERT_TRUE(channel.send(first.write.get()) && channel.send(-1) && channel.send(second.write.get()));
  first.write.reset();
  second.write.reset();
  Fd kept;
  channel.receive(kept);
  EXPECT_TRUE(has_ended(first.read));
  EXPECT_FALSE(has_ended(second.read));
  kept.reset();
  EXPECT_TRUE(has_ended(second.read));
}

TEST(DescriptorChannel, FullItSaysSoInsteadOfWaiting) {
  const DescriptorChannel channel;
  int sent = 0;
  while (channel.send(-1)) ASSERT_LT(++sent, 1'000'000);
  Fd kept;
  channel.receive(kept);
  EXPECT_TRUE(channel.send(-1)) << "there is room again";
}

}  // namespace
}  // namespace lrun
