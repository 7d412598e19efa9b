#include "rendezvous/message.h"

#include <gtest/gtest.h>

#include <functional>

#include "launcher_records.h"

namespace lrun::launcher {
namespace {

using Kind = LauncherMessage::Kind;

Membership seen_by_first(const std::vector<JoinRecord>& nodes) {
  RankAssignment assignment = assign_ranks(nodes);
  assignment.common.self = assignment.members.front();
  return assignment.common;
}

JoinRecord with_copier(JoinRecord record) {
  record.copy_port = 7002;
  return record;
}

JoinRecord reached_leader(const std::string& address) {
  JoinRecord record = test::node_at(address);
  record.standby_port = 7001;
  return record;
}

std::vector<LauncherMessage> messages_of_all_kinds() {
  return {{.kind = Kind::kJoin, .join = test::node_at("10.0.0.1", 2, 1)},
          {.kind = Kind::kJoin, .join = with_copier(test::node_at("10.0.0.1"))},
          {.kind = Kind::kHeartbeat, .sent_ns = 5},
          {.kind = Kind::kStopping, .round = 2, .text = "{\"kind\": 1}"},
          {.kind = Kind::kReport, .round = 2, .text = "report"},
          {.kind = Kind::kReady, .round = 3},
          {.kind = Kind::kReady, .round = 3, .keeps = {{"a token", 0}, {"another", 65'535}}},
          {.kind = Kind::kLeave},
          {.kind = Kind::kAsk, .asker = 3},
          {.kind = Kind::kAnswer, .text = "status", .asker = 3},
          {.kind = Kind::kRejected, .text = "why", .hint = "what to do"},
          {.kind = Kind::kWaiting, .text = "who"},
          {.kind = Kind::kBegin, .membership = seen_by_first({test::node_at("10.0.0.1")})},
          {.kind = Kind::kHeartbeatAck, .sent_ns = 5, .steady_ns = 6, .wall_ns = 7},
          {.kind = Kind::kStop, .round = 1, .text = "why"},
          {.kind = Kind::kLost, .round = 1, .text = "how", .node = "b"},
          {.kind = Kind::kInvite, .round = 3, .join = reached_leader("10.0.0.2")},
          {.kind = Kind::kRedirect, .port = 7001, .address = "fd00::2"},
          {.kind = Kind::kHasBegun, .round = 4},
          {.kind = Kind::kSpare, .text = "why", .successors = {{1, "b", "10.0.0.2", 7001}, {3, "d", "10.0.0.4", 7003}}},
          {.kind = Kind::kOver, .round = 1, .text = "reports"}};
}

std::string bytes_of(const std::vector<LauncherMessage>& messages) {
  std::string bytes;
  for (const LauncherMessage& message : messages) append_message(bytes, message);
  return bytes;
}

TEST(LauncherMessage, OfEveryKindComesBackAsItWas) {
  for (const LauncherMessage& message : messages_of_all_kinds()) {
    EXPECT_EQ(launcher_message_from_json(to_json(message)), message) << to_json(message);
  }
}

TEST(LauncherMessage, MustHaveWhatItsKindSays) {
  EXPECT_FALSE(launcher_message_from_json(R"({"kind": "join"})"));
  EXPECT_FALSE(launcher_message_from_json(R"({"kind": "begin"})"));
  EXPECT_FALSE(launcher_message_from_json(R"({"kind": "dance"})"));
  EXPECT_FALSE(launcher_message_from_json(R"({"kind": "ready", "round": -1})"));
  EXPECT_FALSE(launcher_message_from_json(R"({"kind": "ready", "round": 1e300})"));
  EXPECT_FALSE(launcher_message_from_json(R"({"kind": "ready", "round": 4294967297})"));
  EXPECT_FALSE(launcher_message_from_json(R"({"kind": "beat", "sent_ns": -9223372036854775808})"));
  EXPECT_FALSE(launcher_message_from_json(R"({"kind": "beat", "sent_ns": 18446744073709551615})"));
  EXPECT_FALSE(launcher_message_from_json(R"({"kind": "stop", "text": 5})"));
  EXPECT_FALSE(launcher_message_from_json(R"([])"));
  EXPECT_FALSE(launcher_message_from_json(R"({"kind": "invite"})"));
  EXPECT_FALSE(launcher_message_from_json(to_json({.kind = Kind::kInvite, .join = test::node_at("10.0.0.1")})))
      << "nobody can go where no meeting is";
  for (const char* const place : {R"("address": "10.0.0.1")", R"("port": 7001)", R"("port": 7001, "address": "b")"}) {
    EXPECT_FALSE(launcher_message_from_json(R"({"kind": "elsewhere", )" + std::string(place) + "}")) << place;
  }
}

TEST(LauncherMessage, RefusesARecordThatIsOutOfRange) {
  for (const auto& change : std::vector<std::function<void(JoinRecord&)>>{
           [](JoinRecord& record) { record.workers = 0; }, [](JoinRecord& record) { record.address = "a.name"; },
           [](JoinRecord& record) { record.store_port = 65'536; }, [](JoinRecord& record) { record.node_rank = -1; },
           [](JoinRecord& record) { record.max_nodes = 1, record.min_nodes = 2; },
           [](JoinRecord& record) { record.token.clear(); }, [](JoinRecord& record) { record.copy_port = 65'536; },
           [](JoinRecord& record) { record.copy_port = -1; },
           [](JoinRecord& record) { record.node.assign(2000, 'x'); }}) {
    JoinRecord record = test::node_at("10.0.0.1");
    change(record);
    EXPECT_FALSE(join_record_from_json(to_json(record))) << to_json(record);
  }
}

TEST(LauncherMessage, RefusesSuccessorsThatCannotBe) {
  const Successor good{1, "b", "10.0.0.2", 7001};
  std::vector<Successor> many(Membership::kMostSuccessors + 1, good);
  for (int rank = 0; Successor & each : many) each.node_rank = rank++;
  Successor of_no_port = good;
  of_no_port.standby_port = 0;
  for (const auto& successors : std::vector<std::vector<Successor>>{{good, good}, {of_no_port}, many}) {
    EXPECT_FALSE(launcher_message_from_json(to_json({.kind = Kind::kSpare, .successors = successors})));
  }
}

TEST(LauncherMessage, RefusesCopiesOfNodesThatCannotBe) {
  for (const auto& keeps :
       std::vector<std::vector<FileOwner>>{{{"", 0}}, {{"a", -1}}, {Member::kMostInherited + 1, FileOwner{"a", 0}}}) {
    EXPECT_FALSE(launcher_message_from_json(to_json({.kind = Kind::kReady, .round = 1, .keeps = keeps})));
  }
  EXPECT_FALSE(launcher_message_from_json(R"({"kind": "ready", "round": 1, "keeps": 5})"));
  EXPECT_FALSE(launcher_message_from_json(R"({"kind": "ready", "round": 1, "keeps": [["a", 0]]})"));
}

TEST(EncodedMessage, IsWhatEachWouldHaveBeenToldAlone) {
  const RankAssignment assignment = assign_ranks({test::node_at("10.0.0.1", 3), test::node_at("10.0.0.2", 2)});
  LauncherMessage message{.kind = Kind::kBegin, .round = 4, .membership = assignment.common};
  EncodedMessage encoded(message);
  for (const Member& self : assignment.members) {
    message.membership->self = self;
    LauncherMessageDecoder decoder(kMostBytesFromLeader);
    decoder.feed(encoded.bytes_for(self));
    EXPECT_EQ(decoder.next(), message) << decoder.refusal();
  }
  const LauncherMessage over{.kind = Kind::kOver, .round = 4, .text = "a \"report\""};
  EXPECT_EQ(EncodedMessage(over).bytes(), bytes_of({over}));
}

TEST(LauncherMessageDecoder, TakesMessagesWhereverTheyAreCut) {
  const std::vector<LauncherMessage> messages = messages_of_all_kinds();
  const std::string bytes = bytes_of(messages);
  for (const std::size_t step : {std::size_t{1}, std::size_t{3}, std::size_t{100}, bytes.size()}) {
    LauncherMessageDecoder decoder(kMostBytesFromLauncher);
    std::vector<LauncherMessage> decoded;
    for (std::size_t at = 0; at < bytes.size(); at += step) {
      decoder.feed(std::string_view(bytes).substr(at, step));
      while (auto message = decoder.next()) decoded.push_back(*message);
    }
    EXPECT_EQ(decoder.refusal(), "");
    EXPECT_EQ(decoded, messages) << "pieces of " << step;
  }
}

TEST(LauncherMessageDecoder, RefusesALengthBeforeItsBytesCome) {
  LauncherMessageDecoder decoder(1000);
  decoder.feed(std::string_view("\x00\x00\x10\x00", 4));
  EXPECT_FALSE(decoder.next());
  EXPECT_EQ(decoder.refusal(), "a message of 4096 bytes, and the limit is 1000");
}

TEST(LauncherMessageDecoder, StopsAtAMessageThatMakesNoSense) {
  LauncherMessageDecoder decoder(1000);
  decoder.feed(std::string_view("\x00\x00\x00\x02{}\x00\x00\x00\x02{}", 12));
  EXPECT_FALSE(decoder.next());
  EXPECT_EQ(decoder.refusal(), "an invalid message");
}

}  // namespace
}  // namespace lrun::launcher
