#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/job_member.h"
#include "verdict/job_report.h"

namespace lrun::launcher {

/// Writes down what a launcher sends to its job; the test is the other nodes.
class FakeJob final : public JobMember {
 public:
  void set_events(JobEvents& to) override { events = &to; }
  void set_questions(Questions to) override { questions = std::move(to); }
  void ask(const std::string& question) override { add("ask " + question); }
  void stopping(const std::string& text) override {
    notice = stop_notice_from_json(text);
    add("stopping");
  }
  void report(const std::string& text) override {
    reported = text;
    add("report");
  }
  void ready(int attempt, const std::string& /*history*/, const std::vector<FileOwner>& /*keeps*/) override {
    add("ready " + std::to_string(attempt));
  }
  void drop_out(const std::string& why) override { add("drop out: " + why); }
  void abandon() override { add("abandon"); }
  void leave(const std::string& text) override { add("leave: " + text); }
  [[nodiscard]] bool may_drop_out() const override { return is_dispensable; }
  [[nodiscard]] bool has_successors() const override { return successors; }
  [[nodiscard]] ClockOffset clock_offset() const override { return {}; }

  JobEvents* events = nullptr;
  std::vector<std::string> calls;
  std::optional<StopNotice> notice;  ///< the last one
  std::string reported;
  Questions questions;
  bool is_dispensable = true;
  bool successors = false;
  std::function<void(const std::string& call)> called;

 private:
  void add(const std::string& call) {
    calls.push_back(call);
    if (called) called(call);
  }
};

/// Of node 0 of so many, each with one worker.
inline Membership membership_of(int nodes, int round = 0, int attempt = 0) {
  Membership membership;
  membership.round = round;
  membership.attempt = attempt;
  membership.num_nodes = membership.world_size = nodes;
  membership.master_addr = "127.0.0.1";
  membership.master_port = 29'500;
  for (int rank = 0; rank < nodes; ++rank) membership.first_names.push_back("n" + std::to_string(rank));
  membership.self.name = "n0";
  membership.self.workers = 1;
  return membership;
}

}  // namespace lrun::launcher
