// Connections of which some go by way of others: shells take the part of ssh, of relays and of launchers.
#include "remote/host_links.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "remote/host_ways.h"
#include "support/temporary_folder.h"

namespace lrun::launcher {
namespace {

using Kind = NodeFrame::Kind;
using Words = std::vector<std::string>;

/// A launcher that sends one frame.
const Words kBegins{"sh", "-c", R"(printf '\000lrun-node/1\nB\000\000\000\000'; exec cat >/dev/null)"};
const Words kRefuses{"sh", "-c", R"(printf '\000lrun-node/1\nf\003\000\000\000old'; exec cat >/dev/null)"};

/// The frames of a relay when both launchers have begun.
constexpr const char* kBothBegin = R"(printf '\000lrun-node/1\n'
printf 'F\015\000\000\000\000\000\000\000\005\000\000\000B\000\000\000\000'
printf 'F\015\000\000\000\001\000\000\000\005\000\000\000B\000\000\000\000'
)";

/// Two hosts, the second one behind the first.
class HostLinksTest : public testing::Test {
 protected:
  HostLinksTest() { ::signal(SIGPIPE, SIG_IGN); }  // as lrun does: a process that has ended reads nothing

  HostLinks links_to(const Words& first, const Words& relay) {
    return HostLinks(
        loop_, {{"h1", false, first, relay}, {"h2", false, kBegins, {}}},
        {{kFromHead, 0}, SpawnDefaults::of_this_process(), ""},
        {.order = [](std::size_t) { return "an order"; },
         .frame = [this](std::size_t host, const NodeFrame& frame) { said_[host] = frame; },
         .ended =
             [this](const std::vector<std::size_t>& hosts, const ExitStatus&, const std::string& line) {
               for (const std::size_t host : hosts) ended_[host] = line;
               ++ends_;
             },
         .failed = [](std::size_t host, const std::string& why) { ADD_FAILURE() << host << ": " << why; }});
  }

  /// Until so much of the hosts is known.
  void run_until_known(std::size_t hosts) {
    const EventLoop::Timer limit = loop_.after(Duration(60'000), [this] { loop_.stop(); });
    look_ = loop_.after(Duration(1), [this, hosts] { look(hosts); });
    loop_.run();
  }

  EventLoop loop_;
  std::map<std::size_t, NodeFrame> said_;
  std::map<std::size_t, std::string> ended_;
  int ends_ = 0;  ///< that were notified

 private:
  void look(std::size_t hosts) {
    if (said_.size() + ended_.size() >= hosts) return loop_.stop();
    look_ = loop_.after(Duration(1), [this, hosts] { look(hosts); });
  }

  EventLoop::Timer look_;
};

TEST_F(HostLinksTest, EndALoginThatPrintsWithoutEnd) {
  HostLinks links = links_to({"yes", "no handshake"}, {"yes", "no handshake"});
  links.connect();
  run_until_known(2);
  EXPECT_EQ(ended_[0], "no handshake");
}

TEST_F(HostLinksTest, ReachFromHereAHostBehindOneThatHangs) {
  HostLinks links = links_to(kBegins, {"sleep", "1000"});
  links.connect();
  links.connect_silent_from_here(steady_now());
  run_until_known(1);
  EXPECT_EQ(said_[1], (NodeFrame{Kind::kBegun, ""}));
  EXPECT_EQ(said_.count(0) + ended_.count(0), 0U) << "a second connection to the host that hangs tells no more";
  EXPECT_EQ(links.first_on_the_way(1), 1U);
}

TEST_F(HostLinksTest, AskTheLauncherOfAHostWhoseLrunKnowsNoRelay) {
  HostLinks links = links_to(kRefuses, {"sh", "-c", "echo 'what is @relay?' >&2; exit 125"});
  links.connect();
  run_until_known(2);
  EXPECT_EQ(said_[0], (NodeFrame{Kind::kRefusal, "old"}));
  EXPECT_EQ(said_[1], (NodeFrame{Kind::kBegun, ""}));
  EXPECT_TRUE(ended_.empty()) << ended_.begin()->second;
}

TEST_F(HostLinksTest, ConnectNoSecondTimeWhereSshDidNotGetThere) {
  HostLinks links = links_to(kRefuses, {"sh", "-c", "echo 'no route' >&2; exit 255"});
  links.connect();
  run_until_known(2);
  EXPECT_EQ(ended_[0], "no route");
  EXPECT_EQ(said_.count(0), 0U);
  EXPECT_EQ(said_[1], (NodeFrame{Kind::kBegun, ""}));
}

/// A relay by way of which a copy goes.
const Words kCopyingRelay{"sh", "-c", R"(printf '\000lrun-node/1\nT\001\000\000\0001'
printf 'F\015\000\000\000\000\000\000\000\005\000\000\000B\000\000\000\000'; exec cat >/dev/null)"};

TEST_F(HostLinksTest, SeeTheProgressOfACopyBehindARelay) {
  HostLinks links = links_to(kBegins, kCopyingRelay);
  links.connect();
  run_until_known(1);
  const SteadyTime answered = links.last_progress(0);
  EXPECT_GT(links.last_progress(1), answered);
  links.connect_silent_from_here(answered);
  EXPECT_EQ(links.first_on_the_way(1), 0U) << "it is waited for";
}

TEST_F(HostLinksTest, ReportTogetherHostsThatEndTogether) {
  const test::TemporaryFolder folder;
  const std::string gate = (folder / "gate").string();
  HostLinks links = links_to(kBegins, {"sh", "-c",
                                       std::string(kBothBegin) + "until [ -e " + gate +
                                           " ]; do sleep 0.01; done; echo 'the cable' >&2; exit 255"});
  links.connect();
  run_until_known(2);
  std::ofstream(gate) << "open";
  run_until_known(4);
  EXPECT_EQ(said_, (std::map<std::size_t, NodeFrame>{{0, {Kind::kBegun, ""}}, {1, {Kind::kBegun, ""}}}));
  EXPECT_EQ(ended_, (std::map<std::size_t, std::string>{{0, "the cable"}, {1, "the cable"}}));
  EXPECT_EQ(ends_, 1);
}

}  // namespace
}  // namespace lrun::launcher
