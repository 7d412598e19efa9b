#include "rendezvous/redirection.h"

#include <gtest/gtest.h>

#include "launcher_records.h"

namespace lrun::launcher {
namespace {

using Kind = LauncherMessage::Kind;
using test::node_at;

TEST(Redirection, SendsLaunchersToTheLatestTarget) {
  Redirection redirection;
  EXPECT_FALSE(redirection.target());
  redirection.redirect_to({"10.0.0.2", 7001}, node_at("10.0.0.1"));
  redirection.redirect_to({"10.0.0.3", 7002}, std::nullopt);
  const LauncherMessage message = redirection.message();
  EXPECT_EQ(message.kind, Kind::kRedirect);
  EXPECT_EQ(message.address, "10.0.0.3");
  EXPECT_EQ(message.port, 7002);
  EXPECT_EQ(redirection.job(), node_at("10.0.0.1")) << "by which those are judged that come later";
  redirection.cancel();
  EXPECT_FALSE(redirection.target() || redirection.job());
}

TEST(Redirection, SendsNewcomersBackFromADeadEnd) {
  Redirection redirection;
  EXPECT_FALSE(redirection.sends_back());
  redirection.send_back("no majority");
  EXPECT_TRUE(redirection.sends_back());
  EXPECT_EQ(redirection.back_message(), (LauncherMessage{.kind = Kind::kNoRendezvous, .text = "no majority"}));
}

TEST(Redirection, KnowsFormerMembers) {
  Redirection redirection;
  redirection.note_member("a");
  EXPECT_TRUE(redirection.was_member("a"));
  EXPECT_FALSE(redirection.was_member("b"));
}

}  // namespace
}  // namespace lrun::launcher
