#include "rendezvous/lobby.h"

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

std::string lobby_token(int host) { return "token of 10.0.0." + std::to_string(host); }

/// '2 1 1': who may speak now, one number for each message.
std::string speakers(Lobby& lobby) {
  std::string text;
  for (const auto& [id, message] : lobby.take_messages()) text += (text.empty() ? "" : " ") + std::to_string(id);
  return text;
}

TEST(Lobby, IsOpenWhereNobodyIsAwaited) {
  Lobby lobby("");
  lobby.receive(1, join_of(1));
  EXPECT_EQ(speakers(lobby), "1");
  EXPECT_EQ(speakers(lobby), "");
}

TEST(Lobby, LetsTheLeadersOwnLauncherSpeakFirst) {
  Lobby lobby(lobby_token(2));
  lobby.receive(1, join_of(1));
  lobby.receive(1, {.kind = Kind::kReady});
  EXPECT_EQ(speakers(lobby), "");
  lobby.receive(2, join_of(2));
  EXPECT_EQ(speakers(lobby), "2 1 1");
  lobby.await_own();
  lobby.receive(3, join_of(3));
  EXPECT_EQ(speakers(lobby), "") << "it has to come again";
}

TEST(Lobby, KeepsWhatMayFollowAJoinAndNoMore) {
  Lobby lobby(lobby_token(2));
  lobby.receive(1, {.kind = Kind::kReady});
  lobby.receive(1, join_of(1));
  lobby.receive(1, join_of(1));
  for (int i = 0; i < 3; ++i) lobby.receive(1, {.kind = Kind::kReady});
  for (int i = 0; i < 3; ++i) lobby.receive(1, {.kind = Kind::kLeave});
  lobby.receive(2, join_of(2));
  EXPECT_EQ(speakers(lobby), "2 1 1 1");
}

TEST(Lobby, ForgetsALauncherThatIsGoneUnlessItMeantToLeave) {
  Lobby lobby(lobby_token(3));
  for (const int host : {1, 2}) lobby.receive(static_cast<LauncherId>(host), join_of(host));
  lobby.receive(2, {.kind = Kind::kLeave});
  lobby.receive(9, {.kind = Kind::kInvite, .join = node_at("10.0.0.9")});
  for (const LauncherId id : {1U, 2U, 9U}) lobby.left(id);
  lobby.receive(3, join_of(3));
  EXPECT_EQ(speakers(lobby), "3 2 2");
}

TEST(Lobby, KeepsTheLatestInvitationForTheEnd) {
  Lobby lobby(lobby_token(1));
  for (const LauncherId id : {8U, 9U}) lobby.receive(id, {.kind = Kind::kInvite, .join = node_at("10.0.0.9")});
  lobby.receive(1, join_of(1));
  EXPECT_EQ(speakers(lobby), "1 9");
}

TEST(Lobby, WaitsForALauncherOfTheJobWhoseStateWasLeftBehind) {
  const JobState state{.round = 3, .members = {lobby_token(5)}};
  for (const LauncherMessage& message : {join_of(4, true), join_of(5)}) {
    Lobby lobby("");
    lobby.await_member_of(state);
    lobby.receive(1, join_of(1));
    EXPECT_EQ(lobby.take_state(), std::nullopt);
    EXPECT_EQ(speakers(lobby), "");
    lobby.receive(2, message);
    EXPECT_EQ(lobby.take_state(), state);
    EXPECT_FALSE(lobby.awaits_member());
    EXPECT_EQ(speakers(lobby), "1 2");
  }
}

TEST(Lobby, MayForgetThatState) {
  Lobby lobby("");
  lobby.await_member_of({.round = 3});
  lobby.receive(1, join_of(1));
  lobby.forget_state();
  EXPECT_EQ(lobby.take_state(), std::nullopt);
  EXPECT_EQ(speakers(lobby), "1");
}

}  // namespace
}  // namespace lrun::launcher
