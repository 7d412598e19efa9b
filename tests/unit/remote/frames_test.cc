#include "remote/frames.h"

#include <gtest/gtest.h>

#include <string>

namespace lrun::launcher {
namespace {

using Kind = NodeFrame::Kind;

NodeOrder an_order() {
  NodeOrder order;
  order.version = "1.2";
  order.values = {{"devices", "4", 4, "--devices", "", ""}, {"wrap", "a b", 2, "wrap", "lrun.toml:3", "0"}};
  order.command = {"./train", "", "\xff\n"};
  order.environment = {"A=1", std::string("B=\xfe")};
  order.folder = "/home/bob/work";
  order.name = "a";
  order.nodes = {"a", "b"};
  order.node_rank = 1;
  order.devices = "0,2";
  order.run_id = "20260101-000000-abcdef";
  order.run_name = "run";
  order.secret = "hidden";
  order.port = 29'500;
  order.colour = true;
  order.most_silence = 60'000;
  return order;
}

TEST(NodeFrames, ComeOutAsTheyWentInHoweverTheyAreCut) {
  const std::string bytes = "Welcome to host a!\n" + std::string(kNodeHandshake) + encode(Kind::kAnswer, "") +
                            encode(Kind::kOut, std::string("x\0y\n", 4));
  for (std::size_t size = 1; size < bytes.size(); ++size) {
    NodeFrameReader reader(kNodeHandshake);
    std::vector<NodeFrame> frames;
    for (std::size_t at = 0; at < bytes.size(); at += size) {
      reader.feed(std::string_view(bytes).substr(at, size));
      while (auto frame = reader.next()) frames.push_back(*frame);
    }
    EXPECT_EQ(frames, (std::vector<NodeFrame>{{Kind::kAnswer, ""}, {Kind::kOut, std::string("x\0y\n", 4)}})) << size;
    EXPECT_FALSE(reader.broken());
  }
}

TEST(NodeFrames, ThatAreInvalidBreakTheStream) {
  NodeFrameReader unknown;
  unknown.feed("?");
  EXPECT_EQ(unknown.next(), std::nullopt);
  EXPECT_TRUE(unknown.broken());
  NodeFrameReader large;
  large.feed("O\xff\xff\xff\xff");
  EXPECT_EQ(large.next(), std::nullopt);
  EXPECT_TRUE(large.broken());
  NodeFrameReader chatter(kNodeHandshake);
  for (int i = 0; i < 40; ++i) chatter.feed(std::string(65'536, 'x'));
  EXPECT_TRUE(chatter.broken()) << "a login script that never ends";
}

TEST(NodeOrder, ComesOutAsItWentIn) {
  EXPECT_EQ(decode_order(encode(an_order())), an_order());
  const NodeReady ready{29'501, "10.0.0.2", "10.0.0.1", "a boot 7 a"};
  EXPECT_EQ(decode_ready(encode(ready)), ready);
  const NodeGo go{29'501, "10.0.0.2", {"a", "b"}};
  EXPECT_EQ(decode_go(encode(go)), go);
  EXPECT_EQ(decode_go(encode(go).substr(1)), std::nullopt);
}

TEST(NodeOrder, GivesItsVersionAlsoWhereTheRestIsUnknown) {
  const std::string bytes = encode(an_order());
  EXPECT_EQ(version_of_order(bytes), "1.2");
  EXPECT_EQ(version_of_order(bytes.substr(0, 12) + "of another version"), "1.2");
  EXPECT_EQ(version_of_order(bytes.substr(0, 5)), "");
}

TEST(NodeOrder, IsRefusedUnlessItIsWhole) {
  const std::string bytes = encode(an_order());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(decode_order(std::string_view(bytes).substr(0, size)), std::nullopt) << size;
  }
  EXPECT_EQ(decode_order(bytes + "x"), std::nullopt);
  NodeOrder nowhere = an_order();
  nowhere.node_rank = 2;
  EXPECT_EQ(decode_order(encode(nowhere)), std::nullopt);
}

TEST(RelayFrames, ComeOutAsTheyWentIn) {
  const HostStart start{7, {"ssh", "", "exec 'lrun' @node"}, true};
  EXPECT_EQ(decode_host_start(encode(start)), start);
  const HostEnd exited{7, {ExitStatus::Kind::kExited, 255}, "Permission denied"};
  EXPECT_EQ(decode_host_end(encode(exited)), exited);
  const HostEnd killed{0, {ExitStatus::Kind::kSignaled, 9}, ""};
  EXPECT_EQ(decode_host_end(encode(killed)), killed);
  const auto frame = decode_host_frame(frame_of_host(3, Kind::kOut, std::string("a\0b", 3)));
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->number, 3);
  NodeFrameReader reader;
  reader.feed(frame->bytes);
  EXPECT_EQ(reader.next(), (NodeFrame{Kind::kOut, std::string("a\0b", 3)}));
}

TEST(RelayFrames, ThatAreCutOrLongerAreRefused) {
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
