#include "multihost/head_connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/log_test_support.h"

namespace lrun::launcher {
namespace {

using ::testing::ElementsAre;
using Kind = NodeFrame::Kind;

/// The test is the head at the other ends of two pipes.
class HeadConnectionTest : public ::testing::Test {
 protected:
  HeadConnectionTest() {
    connection.emplace(loop, in_.read.get(), out_.write.get(),
                       HeadConnection::Events{.frame =
                                                  [this](const NodeFrame& frame) {
                                                    frames.push_back(frame);
                                                    loop.stop();
                                                  },
                                              .lost =
                                                  [this] {
                                                    ++lost;
                                                    loop.stop();
                                                  },
                                              .filled =
                                                  [this](bool full) {
                                                    fillings.push_back(full);
                                                    loop.stop();
                                                  }});
  }

  void run_until(const std::function<bool()>& done) {
    const TimeLimit limit(loop);
    while (!done() && !limit.expired()) loop.run();
  }
  void send(Kind kind, const std::string& payload = "") { put(in_.write, encode(kind, payload)); }

  IgnoreBrokenPipes ignore_;
  EventLoop loop;
  Pipe in_ = make_pipe();
  Pipe out_ = make_pipe();
  std::vector<NodeFrame> frames;
  std::vector<bool> fillings;
  int lost = 0;
  std::optional<HeadConnection> connection;
};

TEST_F(HeadConnectionTest, BeginsWithTheHandshake) {
  Reader head(loop, std::move(out_.read));
  EXPECT_EQ(head.take(), kNodeHandshake);
  connection->send(Kind::kBegun, "");
  EXPECT_EQ(head.take(), std::string(kNodeHandshake) + encode(Kind::kBegun, ""));
  EXPECT_TRUE(connection->empty());
}

TEST_F(HeadConnectionTest, GivesWholeFrames) {
  const std::string bytes = encode(Kind::kSignal, "15");
  put(in_.write, bytes.substr(0, 3));
  put(in_.write, bytes.substr(3));
  send(Kind::kCloseOut);
  run_until([this] { return frames.size() == 2; });
  EXPECT_THAT(frames, ElementsAre(NodeFrame{Kind::kSignal, "15"}, NodeFrame{Kind::kCloseOut, ""}));
}

TEST_F(HeadConnectionTest, TheEndOfTheInputIsTheEndOfTheHead) {
  in_.write.reset();
  run_until([this] { return lost > 0; });
  EXPECT_EQ(lost, 1);
  EXPECT_TRUE(connection->is_lost());
}

TEST_F(HeadConnectionTest, BytesThatAreNoFramesEndIt) {
  put(in_.write, std::string(64, '\xff'));
  run_until([this] { return lost > 0; });
  EXPECT_EQ(lost, 1);
}

TEST_F(HeadConnectionTest, ASilentHeadIsGone) {
  connection->set_most_silence(Duration(50));
  send(Kind::kHeartbeat);
  run_until([this] { return lost > 0; });
  EXPECT_EQ(frames.size(), 1U);
}

TEST_F(HeadConnectionTest, ASuspendedHeadMayBeSilent) {
  connection->set_most_silence(Duration(50));
  send(Kind::kPaused);
  const EventLoop::Timer later = loop.after(Duration(200), [this] { loop.stop(); });
  run_until([&] { return !later.armed(); });
  EXPECT_EQ(lost, 0);
  send(Kind::kHeartbeat);
  run_until([this] { return lost > 0; });
  EXPECT_EQ(lost, 1) << "its time is counted again";
}

TEST_F(HeadConnectionTest, AHeadThatReadsSlowlyIsWaitedFor) {
  for (int i = 0; i < 40; ++i) connection->send(Kind::kOut, std::string(64 * 1024, 'x'));
  EXPECT_THAT(fillings, ElementsAre(true));
  Reader head(loop, std::move(out_.read));
  head.read_until([this](const std::string&) { return connection->empty(); });
  EXPECT_THAT(fillings, ElementsAre(true, false));
}

TEST_F(HeadConnectionTest, WithoutAReaderNothingPilesUp) {
  out_.read.reset();
  for (int i = 0; i < 40; ++i) connection->send(Kind::kOut, std::string(64 * 1024, 'x'));
  EXPECT_TRUE(connection->empty());
}

}  // namespace
}  // namespace lrun::launcher
