#include "remote/relay_frames.h"

#include <gtest/gtest.h>

#include <string>

namespace lrun::launcher {
namespace {

TEST(RelayFrames, ComeOutAsTheyWentIn) {
  const HostStart start{7, {"ssh", "", "exec 'lrun' @node"}, true};
  EXPECT_EQ(decode_host_start(encode(start)), start);
  const HostEnd exited{7, {ExitStatus::Kind::kExited, 255}, "Permission denied"};
  EXPECT_EQ(decode_host_end(encode(exited)), exited);
  const HostEnd killed{0, {ExitStatus::Kind::kSignaled, 9}, ""};
  EXPECT_EQ(decode_host_end(encode(killed)), killed);
  const auto frame = decode_host_frame(frame_of_host(3, NodeFrame::Kind::kOut, std::string("a\0b", 3)));
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->number, 3);
  NodeFrameReader reader;
  reader.take(frame->bytes);
  EXPECT_EQ(reader.next(), (NodeFrame{NodeFrame::Kind::kOut, std::string("a\0b", 3)}));
}

TEST(RelayFrames, ThatAreCutOrLongerAreNone) {
  const std::string start = encode(HostStart{7, {"ssh"}, false});
  const std::string end = encode(HostEnd{7, {}, "no"});
  for (std::size_t size = 0; size < start.size(); ++size) EXPECT_FALSE(decode_host_start(start.substr(0, size)));
  for (std::size_t size = 0; size < end.size(); ++size) EXPECT_FALSE(decode_host_end(end.substr(0, size)));
  EXPECT_FALSE(decode_host_start(start + "x"));
  EXPECT_FALSE(decode_host_end(end + "x"));
  EXPECT_FALSE(decode_host_frame("1234"));
}

}  // namespace
}  // namespace lrun::launcher
