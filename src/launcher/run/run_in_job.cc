// In: the plan of one node of a job. Out: the exit code of its launcher. Called by launch() below the guard.
#include "run/run_in_job.h"

#include <fmt/format.h>

#include <csignal>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/message.h"
#include "cluster/slurm.h"
#include "copies/copier.h"
#include "plan/horovod_environment.h"
#include "process/exit_codes.h"
#include "process/process_title.h"
#include "remote/step_outcome.h"
#include "rendezvous/admission.h"
#include "rendezvous/bind_address.h"
#include "rendezvous/rank_assignment.h"
#include "report/parent_error_file.h"
#include "report/verdict_text.h"
#include "run/join_job.h"
#include "run/run_ending.h"
#include "run/start_failure.h"
#include "verdict/job_report.h"

namespace lrun::launcher {
namespace {

/// Ends a spare that the job did not need. srun exits with the highest of its tasks' codes, so a node that waited as
/// --spares asks ends with 0: the job's own code is to be the highest.
int end_as_spare(const RendezvousOutcome& met, const LaunchPlan& plan, const Environment& environment,
                 MessageSink& sink) {
  if (plan.rendezvous->spares > 0) {
    const std::string how = met.why_not.empty() ? "the job has succeeded" : "the job has ended: " + met.why_not;
    sink.note(fmt::format("node {} was a spare, and was not needed: {}", plan.nodes.front().name, how));
    return 0;
  }
  if (met.why_not.empty()) {
    sink.note("the job has succeeded; it did not need this node, which has run nothing");
    return 0;
  }
  const std::string what = "the job has ended: " + met.why_not;
  sink.error(what);
  leave_error_file(environment, std::string_view(what), sink);
  return kExitRefused;
}

/// Launchers on named hosts and in a step got the endpoint from lrun, so a hint about '--rdzv-endpoint' would not help.
const char* usual_hint(const LaunchPlan& plan, const Environment& environment, bool has_head) {
  if (plan.rendezvous->of_ranks || tasks_of_step(environment) == plan.num_nodes) {
    return "look at what the other tasks of the step said: each of them has to run this lrun";
  }
  return has_head ? kOtherPlaceHint : "start lrun on every node with the same '--num-nodes' and '--rdzv-endpoint'";
}

void keep_wait(const RendezvousOutcome& met, const LaunchPlan& plan, const Verdict& verdict, const std::string& text) {
  if (met.record) met.record->keep(plan, verdict, text);
}

/// Another node cannot start its workers, and the job needs it.
int end_with_other(const RendezvousOutcome& met, const LaunchPlan& plan, const Environment& environment,
                   MessageSink& sink) {
  const Verdict verdict = failure_of_another_node(met.report);
  if (speaks_for_job(plan)) sink.print_of_job(verdict_text(verdict, {.colour = sink.colour()}));
  keep_wait(met, plan, verdict, verdict_text(verdict, {}));
  leave_error_file(environment, verdict, sink);
  return verdict.exit_code;
}

int end_without_job(const RendezvousOutcome& met, const LaunchPlan& plan, bool is_managed, Guard& guard,
                    const Environment& environment, const LauncherOutput& output) {
  MessageSink& sink = output.sink;
  guard.mark_end(met.signal_number, true);
  if (met.not_needed) return end_as_spare(met, plan, environment, sink);
  if (met.signal_number != 0) {
    const RunEnd end = met.notice.empty()
                           ? RunEnd{.kind = RunEnd::Kind::kInterrupted, .signal_number = met.signal_number}
                           : RunEnd{.kind = RunEnd::Kind::kNotice, .who = met.notice};
    const std::string note = fmt::format("{} while waiting for other {}: {}", reason_text(end),
                                         unit_of(plan.rendezvous->of_ranks, 2), met.why_not);
    const int code = exit_code_of_signal(met.signal_number);
    keep_wait(met, plan, {.end = end, .exit_code = code, .die_of_signal = met.signal_number},
              message_line(Severity::kNote, note));
    // The launchers of a manager or a head get the signal together: one line is enough.
    const bool is_one_of_many = output.head != nullptr || (is_managed && plan.nodes.front().node_rank != 0);
    if (!is_one_of_many && speaks_for_node(plan)) sink.note(note);
    return code;
  }
  if (met.why_not.empty()) return kExitRefused;  // our guard was killed
  const std::string what = fmt::format("the {} did not meet: {}", unit_of(plan.rendezvous->of_ranks, 2), met.why_not);
  const std::string hint = met.hint.empty() ? usual_hint(plan, environment, output.head != nullptr) : met.hint;
  keep_wait(met, plan, {.end = {.kind = RunEnd::Kind::kStartFailed}, .exit_code = kExitRefused},
            message_line(Severity::kError, what) + message_line(Severity::kHint, hint));
  if (met.tells) {
    sink.error(what);
    sink.hint(hint);
  }
  leave_error_file(environment, std::string_view(what), sink);
  return kExitRefused;
}

/// To what started this launcher and waits for the job to begin: a head, or an lrun that watches srun.
void tell_begun(int node_rank, const Environment& environment, const LauncherOutput& output) {
  if (output.head != nullptr) output.head->send_begun();
  const std::string token = outcome_token(environment);
  if (!token.empty() && node_rank == 0) output.sink.print_lines(begun_line(token));
}

/// Empty where no files in memory can be copied: there is no folder for them, or no other node.
std::unique_ptr<CopierProcess> start_copier(const LaunchPlan& plan, const Guard& guard, const std::string& token,
                                            const std::string& secret, MessageSink& sink) {
  const MemoryFolder& memory = guard.memory();
  if (!memory || plan.rendezvous->max_nodes < 2) return nullptr;
  try {
    return std::make_unique<CopierProcess>(
        CopierProcess::Facts{.outer = memory.outer_path(),
                             .folder = memory.path(),
                             .most_bytes = plan.setup.memory.value.bytes,
                             .token = token,
                             .secret = secret,
                             .reach = reach_of(*plan.rendezvous),
                             .address = bind_address_of(*plan.rendezvous),
                             .of = fmt::format("process {}, run {}", guard.pid(), plan.run_id)});
  } catch (const std::system_error& error) {
    sink.warn(fmt::format("files in memory are not copied to another node: {}", error.what()));
    return nullptr;
  }
}

/// Prints the note about the world size, which is known once the nodes have met. A head shows it once.
void note_world(const LaunchPlan& placed, MessageSink& sink) {
  const std::string note = is_horovod(placed) && speaks_for_job(placed) ? horovod_note(placed.world_size) : "";
  if (!note.empty()) sink.message_of_job(Severity::kNote, note);
}

}  // namespace

void name_launcher(const Guard& guard, const LaunchPlan& plan) {
  set_process_title(fmt::format("{} of process {}, run {}", kLauncherName, guard.pid(), plan.run_id));
}

int run_in_job(const LaunchPlan& plan, const Environment& environment, NodeRun run, EventLoop& loop, Guard& guard,
               const LauncherOutput& output) {
  const std::string secret = job_secret(environment);
  JoinRecord record = join_record_of(plan, run.facts.program, run.is_managed);
  const std::unique_ptr<CopierProcess> copier = start_copier(plan, guard, record.token, secret, output.sink);
  if (copier) {
    record.copy_port = copier->port();
    record.copy_key = copier->key();
  }
  run.copier = copier.get();
  Job job(loop, *plan.rendezvous, std::move(record), merge_reports, run.most_connections, secret,
          etcd_user(environment));
  job.on_connection([&guard](int connection) { guard.hold(connection); });
  warn_of_weak_secret(job, plan, secret, output.sink);
  const RendezvousOutcome met = meet(loop, job, plan, guard, environment, output, run.facts.notice);
  if (!met.report.empty()) {
    const int code = end_with_other(met, plan, environment, output.sink);
    leave(loop, job, "", plan, guard, output.sink);
    guard.mark_end(0, true);
    return code;
  }
  if (!met.membership) return end_without_job(met, plan, run.is_managed, guard, environment, output);
  tell_begun(met.membership->self.node_rank, environment, output);
  const LaunchPlan placed = place(plan, *met.membership);
  name_launcher(guard, placed);
  note_world(placed, output.sink);
  run.job = &job;
  run.facts.membership = *met.membership;
  try {
    const auto [verdict, left_nothing] = run_node(placed, environment, std::move(run), loop, guard, output);
    const bool is_noticed = verdict.end.kind == RunEnd::Kind::kNotice && verdict.end.is_ours();
    const bool repeated = is_noticed ||  // a machine sends TERM at its end
                          (verdict.end.kind == RunEnd::Kind::kInterrupted && repeats_term(environment));
    leave(loop, job, job_result_text(verdict), plan, guard, output.sink, repeated ? SIGTERM : 0);
    guard.mark_end(verdict.die_of_signal, left_nothing);
    return verdict.exit_code;
  } catch (...) {
    leave(loop, job, "a launcher of it failed", plan, guard, output.sink);
    throw;
  }
}

}  // namespace lrun::launcher
