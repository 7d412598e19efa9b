// In: a head, and what its hosts answer. Out: the record of its run where it was typed. start_on_hosts.cc makes one.
#include "multihost/head_record.h"

#include <unistd.h>

#include <chrono>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "process/exit_codes.h"
#include "report/diagnostics.h"
#include "report/result_json.h"
#include "report/verdict_text.h"
#include "run/run_folders.h"

namespace lrun::launcher {
namespace {

constexpr const char* kPartOfHead = "head_of_run";  // no host can have this name

LaunchPlan plan_of_head(const NodeOrder& order) {
  LaunchPlan plan;
  plan.run_id = order.run_id;
  plan.run_name = order.run_name.empty() ? order.run_id : order.run_name;
  plan.argv = order.command;
  plan.world_size = 0;  // the hosts know their devices
  plan.output.files = false;
  return plan;
}

RunEnd run_end_of(const Head::End& end) {
  if (end.signal_number != 0) return {.kind = RunEnd::Kind::kInterrupted, .signal_number = end.signal_number};
  if (end.code == 0) return {.kind = RunEnd::Kind::kSucceeded};
  return {.kind = end.code == kExitTimedOut  ? RunEnd::Kind::kTimedOut
                  : end.code == kExitRefused ? RunEnd::Kind::kLauncherFailed
                                             : RunEnd::Kind::kWorkerFailed};
}

}  // namespace

HeadRecord::HeadRecord(EventLoop& loop, const NodeOrder& order, const Environment& environment, MessageSink& sink)
    : loop_(loop),
      environment_(environment),
      plan_(plan_of_head(order)),
      record_(loop, plan_, environment, sink, kPartOfHead),
      answers_(loop, [this](const std::string& question) { return head_->ask(question); }) {}

void HeadRecord::wait(Head& head) {
  head_ = &head;
  began_ = std::chrono::steady_clock::now();
  began_ms_ = wall_ms();
  show_ = loop_.after(kUnseenWait, [this] { show_wait(); });
}

void HeadRecord::show_wait() {
  try {
    waiting_.emplace(loop_, folder_of_run(plan_, environment_), kPartOfHead, names_of_run(plan_, environment_), began_,
                     [this](std::string_view command, const ControlSocket::Reply& reply) { answer(command, reply); });
  } catch (const std::system_error&) {  // NOLINT(bugprone-empty-catch): begin() warns of it
  }
}

void HeadRecord::begin() {
  show_.cancel();
  waiting_.reset();
  has_begun_ = true;
  began_ = std::chrono::steady_clock::now();
  began_ms_ = wall_ms();
  record_.set_answer([this](std::string_view command, const ControlSocket::Reply& reply) { answer(command, reply); });
  record_.make_folders(false);
  record_.open();
  record_.head_started(plan_);
}

void HeadRecord::end(const Head& head, const Head::End& end) {
  Verdict verdict{.end = run_end_of(end), .exit_code = end.code, .die_of_signal = end.signal_number};
  const bool has_failed =
      verdict.end.kind == RunEnd::Kind::kLauncherFailed || verdict.end.kind == RunEnd::Kind::kWorkerFailed;
  if (!has_begun_ && has_failed) verdict.end.kind = RunEnd::Kind::kStartFailed;
  std::string text = head.last_words();
  if (verdict.end.kind == RunEnd::Kind::kSucceeded) text.clear();
  if (!has_begun_) {
    if (!waiting_) show_wait();
    if (waiting_) waiting_->keep(plan_, verdict, text);
    return;
  }
  if (end.signal_number != 0) text = message_line(Severity::kError, verdict_line(verdict)) + text;
  record_.close();
  record_.write_result(verdict, {}, text, hint_in(text));
  record_.prune_others(true);
}

void HeadRecord::answer(std::string_view command, const ControlSocket::Reply& reply) {
  if (!command.starts_with(kJobCommand)) return reply(to_json(status()));
  answers_.ask(std::string(command.substr(kJobCommand.size())), reply);
}

RunStatus HeadRecord::status() const {
  RunStatus status = head_->status();
  status.run_id = plan_.run_id;
  status.pid = ::getpid();
  status.started_ms = began_ms_;
  status.running_ms = std::chrono::ceil<Duration>(std::chrono::steady_clock::now() - began_).count();
  status.argv = plan_.argv;
  return status;
}

}  // namespace lrun::launcher
