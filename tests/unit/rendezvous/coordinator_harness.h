#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "launcher_records.h"
#include "rendezvous/coordinator.h"

namespace lrun::test {
using namespace launcher;

/// Reports as tests gather them: 'a|b|', where one or more are missing at the end.
inline std::string joined(const std::vector<std::string>& reports) {
  std::string text;
  for (const std::string& report : reports) text += (text.empty() ? "" : "|") + report;
  return text;
}

/// One message to one launcher.
struct Told {
  ConnectionId to = 0;
  LauncherMessage message;
  bool last = false;
};

/// What a coordinator sends, to one after the other.
inline std::vector<Told> one_by_one(const std::vector<OutgoingMessage>& sends) {
  std::vector<Told> all;
  for (const OutgoingMessage& send : sends) {
    for (std::size_t i = 0; i < send.to.size(); ++i) {
      all.push_back({send.to[i], send.message, send.last});
      if (!send.selves.empty()) all.back().message.membership->self = send.selves.at(i);
    }
  }
  return all;
}

/// A coordinator and a clock that stands still.
class CoordinatorHarness {
 public:
  explicit CoordinatorHarness(int min_nodes = 2, int max_nodes = 2, MergeReports merge = joined,
                              const RendezvousTimes& times = {.join = std::chrono::seconds(60),
                                                              .replacement = std::chrono::seconds(60),
                                                              .last_call = std::chrono::seconds(1),
                                                              .progress = std::chrono::seconds(5)})
      : coordinator({.times = times, .merge = std::move(merge)}, now),
        times_(times),
        least_(min_nodes),
        most_(max_nodes) {}

  /// Another coordinator, before anybody has joined.
  /// \param own_token  of the leader's own launcher; empty: none is awaited
  void led_by(const std::string& own_token, bool members_elect_leader = false,
              const RendezvousTimes& times = {.last_call = std::chrono::seconds(1)}) {
    coordinator = Coordinator(
        {.times = times, .merge = joined, .own_token = own_token, .members_elect_leader = members_elect_leader}, now);
  }

  void guard_majority() { led_by("", true, times_); }

  void join(ConnectionId id, JoinRecord record) {
    record.min_nodes = least_;
    record.max_nodes = most_;
    coordinator.received(id, {.kind = LauncherMessage::Kind::kJoin, .join = std::move(record)}, now);
  }
  void say(ConnectionId id, LauncherMessage::Kind kind, int round = 0, const std::string& text = {}) {
    coordinator.received(id, {.kind = kind, .round = round, .text = text}, now);
  }
  void ready(ConnectionId id, int round, int attempt) {
    coordinator.received(id, {.kind = LauncherMessage::Kind::kReady, .round = round, .attempt = attempt}, now);
  }
  void lose(ConnectionId id, const std::string& how) { coordinator.left(id, how, now, now - std::chrono::seconds(1)); }
  void pass(Duration time) {
    now += time;
    coordinator.advance(now);
  }
  /// 'begin>1 begin>2': what was said since the last call, to whom.
  std::string said() {
    std::string text;
    sent = one_by_one(coordinator.outbox().take_messages());
    for (const Told& send : sent) {
      const std::string json = to_json(send.message);
      const std::string kind = json.substr(json.find("\"kind\":\"") + 8);
      text += (text.empty() ? "" : " ") + kind.substr(0, kind.find('"')) + ">" + std::to_string(send.to);
    }
    return text;
  }
  void join_two() {
    join(1, node_at("10.0.0.1"));
    join(2, node_at("10.0.0.2"));
    EXPECT_EQ(said(), "begin>1 begin>2");
  }

  SteadyTime now = SteadyTime(std::chrono::seconds(100));
  Coordinator coordinator;
  std::vector<Told> sent;

 private:
  RendezvousTimes times_;
  int least_;
  int most_;
};

}  // namespace lrun::test
