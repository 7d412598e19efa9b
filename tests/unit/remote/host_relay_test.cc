// The connections of a relay: shells take the part of launchers.
#include "remote/host_relay.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "support/temporary_folder.h"

namespace lrun::launcher {
namespace {

using Kind = NodeFrame::Kind;

class HostRelayTest : public testing::Test {
 protected:
  HostRelayTest()
      : relay_(loop_, SpawnDefaults::of_this_process(),
               [this](Kind kind, const std::string& payload) { told(kind, payload); }) {
    ::signal(SIGPIPE, SIG_IGN);  // as lrun does
  }

  void start(int number, const std::string& script) {
    relay_.handle({Kind::kStartHost, encode(HostStart{number, {"sh", "-c", script}, false})});
  }

  void run_until(std::function<bool()> done) {
    const EventLoop::Timer limit = loop_.after(Duration(60'000), [this] { loop_.stop(); });
    done_ = std::move(done);
    look();
    loop_.run();
  }

  EventLoop loop_;
  std::vector<HostEnd> ends_;
  std::vector<HostFrame> frames_;
  std::vector<std::string> moves_;

 private:
  void told(Kind kind, const std::string& payload) {
    if (kind == Kind::kHostEnded) ends_.push_back(decode_host_end(payload).value_or(HostEnd{}));
    if (kind == Kind::kHostProgress) moves_.push_back(payload);
    if (kind == Kind::kFromHost) frames_.push_back(decode_host_frame(payload).value_or(HostFrame{}));
  }

  void look() {
    if (done_()) return loop_.stop();
    look_ = loop_.after(Duration(1), [this] { look(); });
  }

  std::function<bool()> done_;
  EventLoop::Timer look_;

 protected:
  HostRelay relay_;
};

TEST_F(HostRelayTest, EndsAConnectionWithAFrameThatIsTooLarge) {
  start(1, R"(printf '\000lrun-node/1\nO\000\000\000\001'; head -c 16777216 /dev/zero; exec cat)");
  run_until([this] { return !ends_.empty(); });
  ASSERT_EQ(ends_.size(), 1U);
  EXPECT_EQ(ends_[0].number, 1);
  EXPECT_EQ(ends_[0].last_line, "it sent a frame that is too large");
  EXPECT_TRUE(frames_.empty());
  start(2, R"(printf '\000lrun-node/1\nB\000\000\000\000'; exec cat >/dev/null)");
  run_until([this] { return !frames_.empty(); });
  ASSERT_EQ(frames_.size(), 1U) << "another host is not heard any more";
  EXPECT_EQ(frames_[0].number, 2);
}

TEST_F(HostRelayTest, ReportsTheProgressOfACopy) {
  const std::string reads =
      "head -c 100000 >/dev/null; printf '\\000lrun-node/1\\nB\\000\\000\\000\\000'; exec cat >/dev/null";
  relay_.handle({Kind::kStartHost, encode(HostStart{7, {"sh", "-c", reads}, true})});
  run_until([this] { return !frames_.empty(); });
  ASSERT_FALSE(moves_.empty());
  EXPECT_EQ(moves_.front(), "7");
}

TEST_F(HostRelayTest, LetsAClosedConnectionEndByItself) {
  const test::TemporaryFolder folder;
  const std::string done = (folder.path() / "done").string();
  start(1, R"(printf '\000lrun-node/1\nB\000\000\000\000'; cat >/dev/null; touch )" + done);
  run_until([this] { return !frames_.empty(); });
  relay_.handle({Kind::kCloseHost, "1"});
  EXPECT_TRUE(relay_.empty());
  run_until([&] { return std::filesystem::exists(done); });
  EXPECT_TRUE(std::filesystem::exists(done)) << "it was killed";
  EXPECT_TRUE(ends_.empty()) << "the head has hung up, and its end is told";
}

}  // namespace
}  // namespace lrun::launcher
