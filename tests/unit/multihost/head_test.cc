#include "multihost/head.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "process/exit_codes.h"
#include "support/log_test_support.h"
#include "support/recording_sink.h"

namespace lrun::launcher {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Kind = NodeFrame::Kind;

/// Writes down what the head does with its connections; the test is the hosts.
struct FakeLinks final : HeadLinks {
  explicit FakeLinks(Events of_head) : events(std::move(of_head)) {}

  void connect() override { connected = true; }
  void connect_silent_from_here(SteadyTime) override {}
  [[nodiscard]] SteadyTime last_progress(std::size_t host) const override {
    const auto found = progress.find(host);
    return found == progress.end() ? began : found->second;
  }
  void send(std::size_t host, Kind kind, std::string_view payload) override {
    sent.push_back({host, {kind, std::string(payload)}});
  }
  bool send_elsewhere(Kind kind) override {
    sent_elsewhere.push_back(kind);
    return is_elsewhere;
  }
  void pause(bool is_paused) override { paused = is_paused; }
  void close(std::size_t host) override { closed.push_back(host); }
  [[nodiscard]] std::size_t first_on_the_way(std::size_t host) const override { return host; }

  /// The frames of a kind that a host was sent.
  [[nodiscard]] std::vector<std::string> sent_to(std::size_t host, Kind kind) const {
    std::vector<std::string> payloads;
    for (const auto& [to, frame] : sent) {
      if (to == host && frame.kind == kind) payloads.push_back(frame.payload);
    }
    return payloads;
  }

  Events events;
  bool connected = false;
  bool is_elsewhere = false;
  bool paused = false;
  SteadyTime began = steady_now();
  std::map<std::size_t, SteadyTime> progress;
  std::vector<std::pair<std::size_t, NodeFrame>> sent;
  std::vector<Kind> sent_elsewhere;
  std::vector<std::size_t> closed;
};

/// Three hosts of which the first is here.
class HeadTest : public ::testing::Test {
 protected:
  HeadTest() {
    options.stop_signals = {SIGINT, SIGTERM};
    options.min_nodes = 3;
    options.end_margin = Duration(20'000);
  }

  /// Runs the head; `hosts` is called once the loop runs, and then plays the hosts.
  Head::End run(std::function<void()> hosts) {
    std::vector<Head::Host> all;
    for (const std::string name : {"a", "b", "c"}) {
      Head::Host host{name == "a", {}};
      host.order.name = name;
      host.order.command = {"./train"};
      host.order.nodes = {"a", "b", "c"};
      host.order.node_rank = static_cast<int>(all.size());
      all.push_back(std::move(host));
    }
    head.emplace(loop, std::move(all), options, output, sink, [this](HeadLinks::Events events) {
      auto made = std::make_unique<FakeLinks>(std::move(events));
      links = made.get();
      return made;
    });
    const EventLoop::Timer play = loop.after(Duration(0), std::move(hosts));
    const TimeLimit limit(loop);
    return head->run();
  }

  void from(std::size_t host, Kind kind, const std::string& payload = "") {
    links->events.frame(host, {kind, payload});
  }
  void answer(std::size_t host) {
    from(host, Kind::kAnswer, encode(NodeReady{host == 0 ? 4000 : 0, "10.0.0.1", "10.0.0.9", ""}));
  }
  void answer_all() {
    for (std::size_t host = 0; host < 3; ++host) answer(host);
  }
  /// All have met.
  void begin_all() {
    answer_all();
    for (std::size_t host = 0; host < 3; ++host) from(host, Kind::kBegun);
  }
  void lose(std::vector<std::size_t> hosts, const std::string& last_line = "") {
    links->events.ended(hosts, ExitStatus{ExitStatus::Kind::kExited, 255}, last_line);
  }
  /// Its launcher ends with this code, and then its connection.
  void end(std::size_t host, int code = 0) {
    from(host, Kind::kEnded, "0 " + std::to_string(code));
    links->events.ended({host}, ExitStatus{ExitStatus::Kind::kExited, code}, "");
  }
  void end_all(int code = 0) {
    for (std::size_t host = 0; host < 3; ++host) end(host, code);
  }

  IgnoreBrokenPipes ignore_;
  EventLoop loop;
  Pipe pipe_ = make_pipe();
  Fd console_ = std::move(pipe_.write);
  Reader out{loop, std::move(pipe_.read)};
  HostOutput output{
      loop, 3, {.console_bytes = 10'000, .stdout_fd = console_.get(), .stderr_fd = console_.get()}, false};
  RecordingSink sink;
  Head::Options options;
  FakeLinks* links = nullptr;
  std::optional<Head> head;
};

TEST_F(HeadTest, KnowsHowFarEachHostIs) {
  using Hosts = std::vector<HostStatus>;
  int began = 0;
  options.began = [&] { ++began; };
  (void)run([&] {
    answer(0);
    EXPECT_EQ(head->status().phase, "waiting");
    EXPECT_EQ(head->status().waits_for, "connecting to 2 of 3 hosts: b, c");
    answer(1);
    answer(2);
    EXPECT_EQ(head->status().waits_for, "starting on 3 hosts: a, b, c");
    from(0, Kind::kBegun);
    EXPECT_EQ(head->status().phase, "running");
    EXPECT_EQ(head->status().hosts, (Hosts{{"a", "running"}, {"b", "starting"}, {"c", "starting"}}));
    from(1, Kind::kBegun);
    from(2, Kind::kBegun);
    from(0, Kind::kJobWords, "lrun: error: the cause\nlrun: note: stopping 2 workers\n");
    from(0, Kind::kJobWords, "lrun: note: the verdict\n");
    end(0, 7);
    lose({1});
    EXPECT_EQ(head->status().hosts, (Hosts{{"a", "exited with code 7"}, {"b", "lost"}, {"c", "running"}}));
    end(2, 7);
  });
  EXPECT_EQ(began, 1) << "the run began once";
  EXPECT_EQ(head->status().phase, "over");
  EXPECT_EQ(head->last_words(), "lrun: error: the cause\nlrun: note: the verdict\n");
}

TEST_F(HeadTest, AsksHostsThatRun) {
  std::vector<std::string> told;
  options.told = [&](const std::string& answer) { told.push_back(answer); };
  (void)run([&] {
    EXPECT_EQ(head->ask("1 status"), 0U);
    begin_all();
    end(1);
    EXPECT_EQ(head->ask("2 status"), 2U);
    EXPECT_EQ(links->sent_to(0, Kind::kAsk), std::vector<std::string>{"2 status"});
    EXPECT_THAT(links->sent_to(1, Kind::kAsk), IsEmpty());
    from(2, Kind::kTold, "2\n{}");
    end(0);
    end(2);
  });
  EXPECT_EQ(told, std::vector<std::string>{"2\n{}"});
}

TEST_F(HeadTest, OfARunThatIsRefusedSaysNoBegin) {
  bool began = false;
  options.began = [&] { began = true; };
  (void)run([this] {
    answer(0);
    answer(1);
    from(2, Kind::kRefusal, "no room");
  });
  EXPECT_FALSE(began);
  EXPECT_EQ(head->last_words(), sink.text()) << "'lrun report' shows why it did not begin";
  EXPECT_THAT(head->last_words(), HasSubstr("  | c  no room\nlrun: hint: "));
}

TEST_F(HeadTest, TellsAllToGoOnceAllHaveAnswered) {
  const Head::End end = run([this] {
    answer(1);
    answer(2);
    EXPECT_THAT(links->sent, IsEmpty());
    answer(0);
    for (std::size_t host = 0; host < 3; ++host) {
      const auto sent = links->sent_to(host, Kind::kGo);
      ASSERT_EQ(sent.size(), 1U);
      const std::optional<NodeGo> go = decode_go(sent.front());
      ASSERT_TRUE(go);
      EXPECT_EQ(go->port, 4000);
    }
    for (std::size_t host = 0; host < 3; ++host) from(host, Kind::kBegun);
    end_all();
  });
  EXPECT_EQ(end, (Head::End{0, 0}));
  EXPECT_EQ(sink.text(), "");
}

TEST_F(HeadTest, EachHostGetsItsOwnOrder) {
  run([this] {
    EXPECT_TRUE(links->connected);
    const std::optional<NodeOrder> order = decode_order(links->events.order(1));
    ASSERT_TRUE(order);
    EXPECT_EQ(order->name, "b");
    begin_all();
    end_all();
  });
}

TEST_F(HeadTest, HostsThatCannotBeUsedAreOneTable) {
  const Head::End end = run([this] {
    answer(0);
    from(1, Kind::kRefusal, "the directory '/x': No such file or directory");
    links->events.failed(2, "ssh is not there");
  });
  EXPECT_EQ(end, (Head::End{kExitRefused, 0}));
  ASSERT_EQ(sink.entries.size(), 1U) << sink.text();
  EXPECT_THAT(sink.text(), HasSubstr("No such file or directory"));
  EXPECT_THAT(sink.text(), HasSubstr("ssh is not there"));
}

TEST_F(HeadTest, AConnectionThatEndsBeforeTheStartIsAProblemOfItsHost) {
  const Head::End end = run([this] {
    answer(0);
    answer(1);
    lose({2}, "ssh: connect to host c port 22: Connection refused");
  });
  EXPECT_EQ(end.code, kExitRefused);
  EXPECT_THAT(sink.text(), HasSubstr("Connection refused"));
}

TEST_F(HeadTest, AHostThatDoesNotAnswerIsWaitedForByItsOwnTime) {
  options.answer_limit = options.detour_limit = Duration(50);
  const Head::End end = run([this] {
    answer(0);
    answer(1);
  });
  EXPECT_EQ(end.code, kExitRefused);
  EXPECT_THAT(sink.text(), HasSubstr("no answer in 50ms"));
}

TEST_F(HeadTest, AnAnswerThatCannotBeReadIsAProblem) {
  const Head::End end = run([this] {
    answer(0);
    answer(1);
    from(2, Kind::kAnswer, "nonsense");
  });
  EXPECT_EQ(end.code, kExitRefused);
  EXPECT_THAT(sink.text(), HasSubstr("its answer cannot be read"));
}

TEST_F(HeadTest, ASignalBeforeTheStartEndsAtOnce) {
  const Head::End end = run([this] {
    answer(0);
    head->signal_arrived(SIGUSR1);
    head->signal_arrived(SIGINT);
  });
  EXPECT_EQ(end, (Head::End{exit_code_of_signal(SIGINT), SIGINT}));
  EXPECT_EQ(sink.text(), "lrun: note: received SIGINT while connecting to 2 of 3 hosts: b, c\n");
}

TEST_F(HeadTest, ASignalBeforeTheHostsHaveMetSaysSoOnce) {
  const Head::End end = run([this] {
    answer_all();
    head->signal_arrived(SIGINT);
    head->signal_arrived(SIGINT);
    EXPECT_EQ(links->sent_to(2, Kind::kSignal).size(), 2U);
    end_all(exit_code_of_signal(SIGINT));
  });
  EXPECT_EQ(end.signal_number, SIGINT);
  EXPECT_EQ(sink.text(), "lrun: note: received SIGINT while starting on 3 hosts: a, b, c\n");
}

TEST_F(HeadTest, SignalsGoToAllHostsThatStillRun) {
  const Head::End end = run([this] {
    begin_all();
    this->end(2);
    head->signal_arrived(SIGTERM);
    EXPECT_THAT(links->sent_to(0, Kind::kSignal), ElementsAre("15"));
    EXPECT_THAT(links->sent_to(1, Kind::kSignal), ElementsAre("15"));
    EXPECT_THAT(links->sent_to(2, Kind::kSignal), IsEmpty());
    from(0, Kind::kEnded, "15 143");
    this->end(1, 143);
    lose({0});
  });
  EXPECT_EQ(end, (Head::End{exit_code_of_signal(SIGTERM), SIGTERM}));
}

TEST_F(HeadTest, ARunThatSucceededBeforeTheSignalDoesNotDieOfIt) {
  const Head::End end = run([this] {
    begin_all();
    head->signal_arrived(SIGTERM);
    end_all();
  });
  EXPECT_EQ(end, (Head::End{0, 0}));
}

TEST_F(HeadTest, HostsThatDoNotEndAfterASignalAreGivenUp) {
  options.grace = Duration(10);
  options.end_margin = Duration(50);
  const Head::End end = run([this] {
    begin_all();
    head->signal_arrived(SIGTERM);
    this->end(0, 143);
  });
  EXPECT_EQ(end, (Head::End{exit_code_of_signal(SIGTERM), SIGTERM}));
  EXPECT_THAT(sink.text(), HasSubstr("no outcome was received from b, c"));
}

TEST_F(HeadTest, ASecondSignalLeavesLessTime) {
  options.hurried_end = Duration(50);
  const Head::End end = run([this] {
    begin_all();
    head->signal_arrived(SIGINT);
    head->signal_arrived(SIGINT);
  });
  EXPECT_EQ(end.signal_number, SIGINT);
  EXPECT_THAT(sink.text(), HasSubstr("no outcome was received from a, b, c"));
}

TEST_F(HeadTest, ALostHostIsAWarningWhereTheOthersWillReport) {
  run([this] {
    begin_all();
    lose({1}, "Connection reset by peer");
    EXPECT_THAT(sink.entries.front().text, HasSubstr("lrun: warning: "));
    EXPECT_THAT(sink.entries.front().text, HasSubstr("Connection reset by peer"));
    end(0, 1);
    end(2, 1);
  });
}

TEST_F(HeadTest, WithoutAnybodyToReportALossEndsTheRun) {
  const Head::End end = run([this] {
    answer_all();
    lose({0, 1, 2}, "Network is unreachable");
  });
  EXPECT_EQ(end.code, kExitRefused);
  EXPECT_THAT(sink.entries.front().text, HasSubstr("lrun: error: "));
}

TEST_F(HeadTest, HostsThatWouldWaitForALostOneAreStopped) {
  const Head::End end = run([this] {
    answer_all();
    lose({1}, "Connection reset by peer");
    EXPECT_THAT(links->sent_to(0, Kind::kSignal), ElementsAre("15"));
    EXPECT_THAT(links->sent_to(2, Kind::kSignal), ElementsAre("15"));
    this->end(0, 143);
    this->end(2, 143);
  });
  EXPECT_EQ(end.code, kExitRefused) << "they say nothing by their code";
}

TEST_F(HeadTest, WhereFewerHostsAreEnoughNobodyIsStopped) {
  options.min_nodes = 2;
  run([this] {
    answer_all();
    lose({1}, "Connection reset by peer");
    EXPECT_THAT(links->sent_to(0, Kind::kSignal), IsEmpty());
    from(0, Kind::kBegun);
    from(2, Kind::kBegun);
    end(0);
    end(2);
  });
}

TEST_F(HeadTest, ALauncherThatCannotStartAfterAllIsToldAndItsCodeCounts) {
  const Head::End end = run([this] {
    answer_all();
    from(1, Kind::kRefusal, "no process");
    EXPECT_THAT(sink.text(), HasSubstr("b: lrun cannot start there: no process"));
    this->end(0, 143);
    this->end(2, 143);
  });
  EXPECT_EQ(end.code, kExitRefused);
}

TEST_F(HeadTest, TheEndOfTheJobLimitsSilentHosts) {
  options.end_margin = Duration(50);
  const Head::End end = run([this] {
    begin_all();
    this->end(0);
    this->end(1);
  });
  EXPECT_EQ(end, (Head::End{0, 0}));
  EXPECT_THAT(sink.text(), HasSubstr("no outcome was received from c"));
}

TEST_F(HeadTest, AnSshThatStaysAfterItsHostsEndIsNotWaitedFor) {
  options.close_limit = Duration(20);
  const Head::End end = run([this] {
    begin_all();
    for (std::size_t host = 0; host < 3; ++host) from(host, Kind::kEnded, "0 0");
  });
  EXPECT_EQ(end, (Head::End{0, 0}));
}

TEST_F(HeadTest, WhatAllLaunchersSayIsShownOnce) {
  run([this] {
    begin_all();
    for (std::size_t host = 0; host < 3; ++host) from(host, Kind::kJobWords, "the verdict\n");
    from(1, Kind::kOwnWords, "of b alone\n");
    from(2, Kind::kOwnWords, "of b alone\n");
    end_all(1);
  });
  EXPECT_EQ(sink.text(), "the verdict\nof b alone\n");
}

TEST_F(HeadTest, TheErrorOfOneHostIsTheCauseWhereTheJobHasNone) {
  run([this] {
    answer_all();
    from(1, Kind::kOwnWords, "bof b");
    from(1, Kind::kOwnWords, "athere is no host 'a'");
    end_all(125);
  });
  EXPECT_EQ(head->last_words(), "lrun: error: b: there is no host 'a'\n");
}

TEST_F(HeadTest, TheVerdictOfALostFirstHostComesFromAnother) {
  run([this] {
    begin_all();
    from(1, Kind::kJobWords, "the verdict\n");
    EXPECT_EQ(sink.text(), "");
    end(1, 1);
    lose({0});
    EXPECT_THAT(sink.text(), HasSubstr("the verdict"));
    end(2, 1);
  });
}

TEST_F(HeadTest, WorkersOutputIsShownInWholeLines) {
  run([this] {
    begin_all();
    from(0, Kind::kOut, "one ");
    from(1, Kind::kErr, "two\n");
    from(0, Kind::kOut, "line\n");
    from(2, Kind::kOut, "no newline");
    end_all();
  });
  EXPECT_EQ(out.take(), "two\none line\nno newline");
}

TEST_F(HeadTest, AConsoleThatIsFullMakesTheHostsWait) {
  run([this] {
    begin_all();
    from(0, Kind::kOut, std::string(200'000, 'x') + "\n");
    EXPECT_TRUE(links->paused);
    out.read_until([this](const std::string&) { return !links->paused; });
    end_all();
  });
  EXPECT_THAT(out.text.size(), ::testing::Gt(100'000U));
}

TEST_F(HeadTest, AStdoutThatIsClosedIsToldToTheHosts) {
  run([this] {
    begin_all();
    out.close();
    from(0, Kind::kOut, "x\n");
    EXPECT_EQ(links->sent_to(1, Kind::kCloseOut).size(), 1U);
    end_all();
  });
}

TEST_F(HeadTest, HeartbeatsGoToOtherMachinesAndCtrlZIsAnnounced) {
  int stops = 0;
  options.stop_process = [&] { ++stops; };
  run([this] {
    EXPECT_THAT(links->sent_elsewhere, ElementsAre(Kind::kHeartbeat));
    begin_all();
    head->signal_arrived(SIGTSTP);
    EXPECT_THAT(links->sent_elsewhere, ElementsAre(Kind::kHeartbeat, Kind::kPaused, Kind::kHeartbeat));
    end_all();
  });
  EXPECT_EQ(stops, 1);
}

}  // namespace
}  // namespace lrun::launcher
