#include "rendezvous/early_messages.h"

#include <gtest/gtest.h>

#include <string>

#include "launcher_records.h"

namespace lrun::launcher {
namespace {

using Kind = LauncherMessage::Kind;
using test::node_at;

LauncherMessage join_of(int host, bool resumes = false) {
  return {.kind = Kind::kJoin, .resumes = resumes, .join = node_at("10.0.0." + std::to_string(host))};
}

std::string token_of_host(int host) { return "token of 10.0.0." + std::to_string(host); }

/// '2 1 1': who may speak now, one number for each message.
std::string speakers(EarlyMessages& early) {
  std::string text;
  for (const auto& [id, message] : early.take_messages()) text += (text.empty() ? "" : " ") + std::to_string(id);
  return text;
}

TEST(EarlyMessages, IsOpenWhereNobodyIsAwaited) {
  EarlyMessages early("");
  early.receive(1, join_of(1));
  EXPECT_EQ(speakers(early), "1");
  EXPECT_EQ(speakers(early), "");
}

TEST(EarlyMessages, LetsTheLeadersOwnLauncherSpeakFirst) {
  EarlyMessages early(token_of_host(2));
  early.receive(1, join_of(1));
  early.receive(1, {.kind = Kind::kReady});
  EXPECT_EQ(speakers(early), "");
  early.receive(2, join_of(2));
  EXPECT_EQ(speakers(early), "2 1 1");
  early.await_own();
  early.receive(3, join_of(3));
  EXPECT_EQ(speakers(early), "") << "it has to come again";
}

TEST(EarlyMessages, KeepsWhatMayFollowAJoinAndNoMore) {
  EarlyMessages early(token_of_host(2));
  early.receive(1, {.kind = Kind::kReady});
  early.receive(1, join_of(1));
  early.receive(1, join_of(1));
  for (int i = 0; i < 3; ++i) early.receive(1, {.kind = Kind::kReady});
  for (int i = 0; i < 3; ++i) early.receive(1, {.kind = Kind::kLeave});
  early.receive(2, join_of(2));
  EXPECT_EQ(speakers(early), "2 1 1 1");
}

TEST(EarlyMessages, ForgetsALauncherThatIsGoneUnlessItMeantToLeave) {
  EarlyMessages early(token_of_host(3));
  for (const int host : {1, 2}) early.receive(static_cast<ConnectionId>(host), join_of(host));
  early.receive(2, {.kind = Kind::kLeave});
  early.receive(9, {.kind = Kind::kInvite, .join = node_at("10.0.0.9")});
  for (const ConnectionId id : {1U, 2U, 9U}) early.left(id);
  early.receive(3, join_of(3));
  EXPECT_EQ(speakers(early), "3 2 2");
}

TEST(EarlyMessages, KeepsTheLatestInvitationForTheEnd) {
  EarlyMessages early(token_of_host(1));
  for (const ConnectionId id : {8U, 9U}) early.receive(id, {.kind = Kind::kInvite, .join = node_at("10.0.0.9")});
  early.receive(1, join_of(1));
  EXPECT_EQ(speakers(early), "1 9");
}

TEST(EarlyMessages, WaitsForALauncherOfTheJobWhoseStateWasLeftBehind) {
  const JobState state{.round = 3, .members = {token_of_host(5)}};
  for (const LauncherMessage& message : {join_of(4, true), join_of(5)}) {
    EarlyMessages early("");
    early.await_member_of(state);
    early.receive(1, join_of(1));
    EXPECT_EQ(early.take_state(), std::nullopt);
    EXPECT_EQ(speakers(early), "");
    early.receive(2, message);
    EXPECT_EQ(early.take_state(), state);
    EXPECT_FALSE(early.awaits_member());
    EXPECT_EQ(speakers(early), "1 2");
  }
}

TEST(EarlyMessages, MayForgetThatState) {
  EarlyMessages early("");
  early.await_member_of({.round = 3});
  early.receive(1, join_of(1));
  early.forget_state();
  EXPECT_EQ(early.take_state(), std::nullopt);
  EXPECT_EQ(speakers(early), "1");
}

}  // namespace
}  // namespace lrun::launcher
