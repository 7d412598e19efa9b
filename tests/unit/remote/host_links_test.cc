// Connections of which some go by way of others: shells take the part of ssh, of relays and of launchers.
#include "remote/host_links.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "remote/host_ways.h"

namespace lrun {
namespace {

using Kind = NodeFrame::Kind;
using Words = std::vector<std::string>;

/// A launcher that says one frame.
const Words kBegins{"sh", "-c", R"(printf '\000lrun-node/1\nB\000\000\000\000'; exec cat >/dev/null)"};
const Words kRefuses{"sh", "-c", R"(printf '\000lrun-node/1\nf\003\000\000\000old'; exec cat >/dev/null)"};

/// Two hosts, the second one behind the first.
class HostLinksTest : public testing::Test {
 protected:
  HostLinksTest() { ::signal(SIGPIPE, SIG_IGN); }  // as lrun does: who has ended reads nothing

  HostLinks links_to(const Words& first, const Words& relay) {
    return HostLinks(
        loop_, {{"h1", false, first, relay}, {"h2", false, kBegins, {}}},
        {{kFromHead, 0}, SpawnDefaults::of_this_process(), ""},
        {.order = [](std::size_t) { return "an order"; },
         .frame = [this](std::size_t host, const NodeFrame& frame) { said_[host] = frame; },
         .ended = [this](std::size_t host, const ExitStatus&, const std::string& line) { ended_[host] = line; },
         .failed = [](std::size_t host, const std::string& why) { ADD_FAILURE() << host << ": " << why; }});
  }

  /// Until so much is known of the hosts.
  void run_until_known(std::size_t hosts) {
    const EventLoop::Timer limit = loop_.after(Duration(60'000), [this] { loop_.stop(); });
    look_ = loop_.after(Duration(1), [this, hosts] { look(hosts); });
    loop_.run();
  }

  EventLoop loop_;
  std::map<std::size_t, NodeFrame> said_;
  std::map<std::size_t, std::string> ended_;

 private:
  void look(std::size_t hosts) {
    if (said_.size() + ended_.size() >= hosts) return loop_.stop();
    look_ = loop_.after(Duration(1), [this, hosts] { look(hosts); });
  }

  EventLoop::Timer look_;
};

TEST_F(HostLinksTest, ReachFromHereWhoIsBehindAHostThatHangs) {
  HostLinks links = links_to(kBegins, {"sleep", "1000"});
  links.connect();
  links.connect_unheard_from_here();
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

}  // namespace
}  // namespace lrun
