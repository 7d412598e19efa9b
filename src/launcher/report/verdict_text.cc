// In: a Verdict and facts about the run. Out: the lines that people read when a run stops or has ended. Pure.
// RunEnding, ConsoleReporter and the job's observer call it.
#include "report/verdict_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "base/nearest.h"
#include "base/shortened.h"
#include "base/signal_names.h"
#include "logs/terminal_text.h"
#include "plan/worker_environment.h"
#include "verdict/hint_table.h"
#include "verdict/python_traceback.h"

namespace lrun::launcher {
namespace {

constexpr std::size_t kMostEvidenceLines = 9;
constexpr std::size_t kMostEvidenceColumns = 200;
constexpr std::size_t kMostErrorColumns = 160;

/// 'stopping 3 other workers (up to 30s)'.
std::string stopping_workers_text(const std::string& workers, Duration grace) {
  return grace == Duration::zero() ? "killing " + workers
                                   : fmt::format("stopping {} (up to {})", workers, format_duration(grace));
}

/// One line that stands in the line of the cause anyway.
bool is_told_by_error(const FailureRecord& culprit) {
  return culprit.evidence.size() == 1 && culprit.evidence.front() == culprit.error &&
         culprit.error.size() <= kMostErrorColumns;
}

/// The decisive lines of what the culprit printed, or left in its error file, cut to what fits a screen.
std::string evidence_lines(const FailureRecord& culprit, const RunFactsForText& facts) {
  if (culprit.evidence.empty() || facts.evidence_on_screen || is_told_by_error(culprit)) return {};
  const std::string said = culprit.error_file.empty() ? "printed last:" : "left in " + culprit.error_file + ":";
  std::string text = message_line(Severity::kNote, fmt::format("rank {} {}", culprit.rank, said), facts.colour);
  const std::size_t room = kMostEvidenceLines - (facts.core_dump.empty() ? 0 : 1);  // in fifteen lines
  const std::size_t shown = std::min(culprit.evidence.size(), room);
  for (auto line = culprit.evidence.end() - static_cast<std::ptrdiff_t>(shown); line != culprit.evidence.end();
       ++line) {
    text += fmt::format("  | {}\n", shortened(terminal_safe(*line), kMostEvidenceColumns));
  }
  return text;
}

bool is_early_end(const Verdict& verdict) { return verdict.culprit && verdict.culprit->cause == Cause::kEndedEarly; }

/// Why the worker that failed first is not the one to blame.
std::string overruled_line(const Verdict& verdict, const RunFactsForText& facts) {
  if (!verdict.overruled) return {};
  const FailureRecord& first = *verdict.overruled;
  if (is_early_end(verdict)) {
    const std::string error =
        first.error.empty() ? "" : ": " + shortened(terminal_safe(first.error), kMostErrorColumns);
    return message_line(Severity::kNote, fmt::format("rank {} then {}{}", first.rank, first.describe(), error),
                        facts.colour);
  }
  const std::string why = is_victim(first.cause)
                              ? "that makes it a victim, not the cause"
                              : fmt::format("the error file of rank {} is older", verdict.culprit->rank);
  return message_line(Severity::kNote, fmt::format("rank {} ended first and {}; {}", first.rank, first.describe(), why),
                      facts.colour);
}

/// Where the others were that ran on; not where the line of the cause says it.
std::string places_line(const Verdict& verdict, const RunFactsForText& facts) {
  const bool waited_at_a_place = is_early_end(verdict) && verdict.failure() == nullptr;
  const bool told = waited_at_a_place ? verdict.places.size() == 1 : verdict.end.kind == RunEnd::Kind::kHang;
  if (verdict.places.empty() || told) return {};
  return message_line(Severity::kNote, "seen before the stop: " + terminal_safe(describe_places(verdict.places)),
                      facts.colour);
}

/// The blamed rank may only be the first whose failure was seen. Empty where the other ranks' stacks show more.
std::string doubt_line(const Verdict& verdict, const RunFactsForText& facts) {
  if (!verdict.culprit || verdict.overruled || !is_victim(verdict.culprit->cause)) return {};
  if (!facts.gave_up.empty()) {
    return message_line(Severity::kNote, "each rank waited for the others: " + terminal_safe(facts.gave_up),
                        facts.colour);
  }
  const bool may_another = verdict.others.total() > verdict.others.succeeded;
  if (!may_another || !verdict.places.empty()) return {};
  return message_line(Severity::kNote,
                      fmt::format("rank {} looks like a victim: another rank may have failed first; '--settle 30s' "
                                  "gives it time to say so",
                                  verdict.culprit->rank),
                      facts.colour);
}

/// 'had succeeded', with the first rank that did where others ran on until the run was stopped.
std::string early_success_text(const Verdict& verdict) {
  if (!verdict.ended_first || verdict.culprit) return "had succeeded";
  return fmt::format("had succeeded ({}rank {} after {})", verdict.others.succeeded > 1 ? "first " : "",
                     verdict.ended_first->rank, format_elapsed(Duration(verdict.ended_first->lifetime_ms)));
}

/// 'rank 1 ran for 0.4s (local rank 1, pid 4242, GPU 2 on gpu-node-1)'.
std::string culprit_text(const FailureRecord& culprit) {
  const std::string device = culprit.device.empty() ? "" : fmt::format(", {}", culprit.device);
  return fmt::format("rank {} ran for {} (local rank {}, pid {}{} on {})", culprit.rank,
                     format_elapsed(Duration(culprit.lifetime_ms)), culprit.local_rank, culprit.pid, device,
                     terminal_safe(culprit.node));
}

/// The other workers, counted and not shown: they are victims. Empty when there are none.
std::string others_text(const Verdict& verdict, const RunFactsForText& facts) {
  const Fates& others = verdict.others;
  const std::vector<std::pair<int, std::string>> fates{
      {others.stopped_by_signal, "ended when asked to"},
      {others.killed, verdict.end.grace_expired
                          ? fmt::format("had to be killed after {}", format_duration(facts.grace))
                          : std::string(others.killed == 1 ? "was killed at once" : "were killed at once")},
      {others.lost, "cannot be ended"},
      {others.failed, is_early_end(verdict) ? "failed after it"
                      : verdict.culprit     ? "failed with it"
                      : others.failed == 1  ? "failed by itself"
                                            : "failed by themselves"},
      {others.succeeded, early_success_text(verdict)}};
  std::vector<std::string> parts;
  for (const auto& [count, fate] : fates) {
    if (count > 0) parts.push_back(fmt::format("{} {}", count, fate));
  }
  if (parts.empty()) return {};
  const std::string whose = counted(others.total(), verdict.culprit ? "other worker" : "worker");
  return whose + (parts.size() == 1 ? parts[0].substr(parts[0].find(' ')) : ": " + join_words(parts));
}

/// Those of this node, unless the culprit's are elsewhere.
std::string logs_text(const Verdict& verdict, const RunFactsForText& facts) {
  const std::string of_culprit = verdict.culprit ? verdict.culprit->logs : std::string();
  const bool is_here = of_culprit.empty() || (!facts.logs.empty() && of_culprit.starts_with(facts.logs + '/'));
  if (!is_here) return fmt::format("logs on {}: {}", terminal_safe(verdict.culprit->node), terminal_safe(of_culprit));
  if (facts.logs.empty()) return {};
  return facts.logs_host.empty() ? "logs: " + facts.logs
                                 : fmt::format("logs on {}: {}", terminal_safe(facts.logs_host), facts.logs);
}

/// The culprit's process, the others, the restarts and the logs, on one line.
std::string surroundings_line(const Verdict& verdict, const RunFactsForText& facts) {
  const bool has_process = verdict.culprit && verdict.culprit->ending != FailureRecord::Ending::kExecFailed;
  std::string text;
  for (const std::string& part : {has_process ? culprit_text(*verdict.culprit) : std::string(),
                                  others_text(verdict, facts), facts.restarts, logs_text(verdict, facts)}) {
    if (!part.empty()) text += (text.empty() ? "" : "; ") + part;
  }
  return text.empty() ? text : message_line(Severity::kNote, text, facts.colour);
}

std::string hint_line(const FailureRecord& culprit, const RunFactsForText& facts) {
  const std::string hint = hint_text(culprit, facts);
  return hint.empty() ? hint : message_line(Severity::kHint, terminal_safe(hint), facts.colour);
}

/// A hint how to make the program run; empty when there is none.
std::string start_hint(const FailureRecord& record, const RunFactsForText& facts) {
  const std::string& program = facts.program;
  if (!facts.advice.empty()) return facts.advice;
  switch (record.value) {
    case ENOENT:
      if (!facts.script.empty() && program.find(' ') != std::string::npos) {
        return "'--python' takes the path of a Python alone; a tool around it is given by '--wrap \"python3 -m "
               "debugpy\"'";
      }
      if (!facts.script.empty()) {
        return fmt::format("'{}' needs Python: install it, or name one with '--python PATH'", facts.script);
      }
      if (!facts.interpreter.empty()) {
        const bool windows = facts.interpreter.ends_with('\r');
        return windows ? "it has Windows line ends: 'dos2unix' fixes them"
                       : fmt::format("its first line names '{}', which is not there", facts.interpreter);
      }
      if (!facts.nearest_verb.empty()) return did_you_mean("lrun " + facts.nearest_verb);
      if (!facts.nearest_file.empty()) return did_you_mean(facts.nearest_file);
      if (program.starts_with('='))
        return "write no blanks around '=', as in 'NAME=VALUE', and quote a rule of '--watch'";
      if (program.find('=') != std::string::npos && program.find('/') > program.find('=')) {
        const std::string name = program.substr(0, program.find('='));
        if (is_given_by_lrun(name)) return fmt::format("lrun itself gives '{}' to workers: leave it out", name);
        return fmt::format("to set a variable of the workers, write '--env {}' before PROGRAM", program);
      }
      if (program.find('/') != std::string::npos) return "check the path";
      if (facts.given_to_python) {
        return fmt::format("it is not in '{}': start lrun in its folder, or write its path{}", facts.folder,
                           program.ends_with(".py") ? "" : "; '--no-python' looks for it on PATH");
      }
      return facts.is_in_folder ? fmt::format("no '{}' on PATH; the one in this folder is './{}'", program, program)
                                : fmt::format("there is no '{}' on PATH or in this folder", program);
    case EISDIR:
      return "name the program in it";
    case EACCES:
      return fmt::format("'chmod +x {}' makes a script or program executable", program);
    case ETXTBSY:
      return "some program has it open for writing: wait until it is built or copied";
    case E2BIG:
      return "arguments and environment together are longer than 'getconf ARG_MAX'";
    case ENOEXEC:
      return "a script needs a first line such as '#!/bin/sh'; other files must be programs for this machine";
    default:
      return {};
  }
}

std::string start_failure_text(const FailureRecord& record, const RunFactsForText& facts) {
  if (record.ending != FailureRecord::Ending::kExecFailed) return {};
  StartProblem problem = start_problem(record, facts);
  if (!facts.node.empty()) {
    const bool says_more = !record.error.empty();  // else it was found when the workers were started
    problem = {says_more ? fmt::format("node {}: {}", facts.node, terminal_safe(record.error))
                         : fmt::format("node {} cannot run its program: {}", facts.node, std::strerror(record.value)),
               terminal_safe(record.detail)};
  }
  return message_line(Severity::kError, problem.what, facts.colour) +
         (problem.hint.empty() ? std::string() : message_line(Severity::kHint, problem.hint, facts.colour));
}

/// Ranks that wait for others are not at work.
std::string hint_about_hang(const std::vector<RankPlace>& places) {
  const std::string hint = terminal_safe(hint_about_waiting(places));
  return hint.empty() ? "if the ranks were at work, let them print more often, or give a longer '--hang-timeout'"
                      : hint;
}

/// For a run that lrun stopped by a limit that may be the wrong one, or by a signal that came with something else.
std::string hint_about_end(const Verdict& verdict) {
  const RunEnd& end = verdict.end;
  if (end.kind == RunEnd::Kind::kHang) return hint_about_hang(verdict.places);
  if (end.kind == RunEnd::Kind::kStartTimedOut) {
    return "'--start-timeout' is for programs that call init_process_group(); for others leave it out: '--timeout' "
           "limits a run";
  }
  if (end.kind == RunEnd::Kind::kInterrupted && end.signal_number == SIGHUP) {
    return "its terminal was closed: 'nohup', tmux and screen keep a run alive";
  }
  return {};
}

std::string reason_here_text(const RunEnd& end) {
  switch (end.kind) {
    case RunEnd::Kind::kInterrupted:
      return fmt::format("received {}", signal_name(end.signal_number));
    case RunEnd::Kind::kConsoleClosed:
      return "the reader of the output is gone";
    case RunEnd::Kind::kRequested:
      return "asked to stop";
    case RunEnd::Kind::kTimedOut:
      return fmt::format("the {} of --timeout are over", format_duration(Duration(end.limit_ms)));
    case RunEnd::Kind::kHang:
      return fmt::format("no worker made progress for the {} of --hang-timeout{}",
                         format_duration(Duration(end.limit_ms)), end.who.empty() ? "" : ": " + end.who);
    case RunEnd::Kind::kStartTimedOut:
      return fmt::format("{} connected to the store after the {} of --start-timeout",
                         end.who.empty()                 ? "not all workers were"
                         : end.who.starts_with("ranks ") ? end.who + " were not"
                                                         : end.who + " was not",
                         format_duration(Duration(end.limit_ms)));
    case RunEnd::Kind::kGuardDied:
      return "lrun itself was killed";
    case RunEnd::Kind::kHeadLost:
      return "the connection from the lrun that started it was lost";
    case RunEnd::Kind::kLauncherFailed:
    case RunEnd::Kind::kNotice:
    case RunEnd::Kind::kWatched:
      return terminal_safe(end.who);
    case RunEnd::Kind::kWorkerFailed:
      return "a worker failed";
    default:
      return {};
  }
}

}  // namespace

StartProblem start_problem(const FailureRecord& record, const RunFactsForText& facts) {
  const bool is_name =
      facts.script.empty() && facts.interpreter.empty() && facts.program.find('/') == std::string::npos;
  const bool is_seen =
      record.value == ENOENT && is_name && facts.is_in_folder;  // 'No such file' would be denied by 'ls'
  return {
      fmt::format("cannot run '{}': {}", facts.program, is_seen ? "it is not on PATH" : std::strerror(record.value)),
      start_hint(record, facts)};
}

std::string reason_text(const RunEnd& end) {
  if (end.changes_nodes()) return terminal_safe(end.who);
  const std::string reason = reason_here_text(end);
  return end.is_ours() || end.by_head ? reason : fmt::format("node {}: {}", terminal_safe(end.node), reason);
}

namespace {

/// For an exit code without a word about it.
std::string hint_of_silent_exit(const FailureRecord& record) {
  constexpr int kLastCode = 255;
  const bool is_silent = record.error.empty() && record.location.empty() && record.evidence.empty();
  constexpr int kFirstOfShell = 126;  // and signals from 128 on
  const bool may_be_chosen = record.value < kFirstOfShell || record.value == kLastCode;
  if (record.ending != FailureRecord::Ending::kExited || !is_silent || !may_be_chosen) return {};
  if (record.value == kLastCode) return "it printed no reason; 255 is the code of exit(-1), too";
  return fmt::format("it printed no reason: look for exit({}) in the program", record.value);
}

}  // namespace

std::string hint_text(const FailureRecord& culprit, const RunFactsForText& facts) {
  if (!facts.tool.empty()) return facts.tool;
  std::string hint = hint_for(culprit, facts.python, facts.asked_for_core);
  if (hint.empty()) hint = facts.program_hint;
  return hint.empty() && facts.sees_output ? hint_of_silent_exit(culprit) : hint;
}

std::string cause_text(const FailureRecord& record) {
  std::string error;
  if (!is_report_of_signal(record.error)) error = shortened(terminal_safe(record.error), kMostErrorColumns);
  const bool has_error = !error.empty();
  if (!record.location.empty()) error += " at " + shortened(terminal_safe(record.location), kMostErrorColumns);
  const bool ended_itself = record.ending == FailureRecord::Ending::kExited || record.ended_by(SIGABRT);
  if (has_error && ended_itself && record.describe_reason().empty()) {
    const bool exited = record.ending == FailureRecord::Ending::kExited;
    const std::string status = exited ? fmt::format("exit {}", record.value) : signal_name(record.value);
    return fmt::format("rank {} failed: {} ({}{})", record.rank, error, status,
                       record.core_dumped ? ", core dumped" : "");
  }
  return fmt::format("rank {} {}{}{}", record.rank, terminal_safe(record.describe()), has_error ? ": " : "", error);
}

std::string verdict_line(const Verdict& verdict) {
  std::string cause = verdict.culprit ? cause_text(*verdict.culprit) : std::string();
  if (verdict.culprit && verdict.end.kind == RunEnd::Kind::kWorkerFailed) return cause;
  RunEnd end = verdict.end;
  if (verdict.culprit && end.kind == RunEnd::Kind::kHang) end.who.clear();  // the cause or places_line()
  return fmt::format("the run was stopped: {}{}{}", reason_text(end), cause.empty() ? "" : ": ", cause);
}

std::string stopping_text(const RunEnd& end, const FailureRecord* cause, RunningWorkers others,
                          const RunFactsForText& facts) {
  const bool at_once = end.kind == RunEnd::Kind::kGuardDied;
  const std::string workers =
      counted(others.workers, cause != nullptr ? "other worker" : "worker") +
      (others.nodes > 1 && others.workers >= others.nodes ? fmt::format(" on {} nodes", others.nodes) : std::string());
  const std::string what =
      others.workers == 0 ? "" : stopping_workers_text(workers, at_once ? Duration::zero() : facts.grace);
  if (cause != nullptr) {
    return message_line(Severity::kError, cause_text(*cause), facts.colour) +
           (what.empty() ? what : message_line(Severity::kNote, what, facts.colour));
  }
  const bool from_keyboard =
      end.kind == RunEnd::Kind::kInterrupted && end.signal_number == SIGINT && others.workers > 0;
  RunEnd told = end;
  if (end.kind == RunEnd::Kind::kHang && end.is_ours()) told.who.clear();  // the stacks stand above
  return message_line(
      Severity::kNote,
      reason_text(told) + (what.empty() ? what : "; " + what) + (from_keyboard ? "; Ctrl-C again kills at once" : ""),
      facts.colour);
}

std::string verdict_text(const Verdict& verdict, const RunFactsForText& facts) {
  if (verdict.end.kind == RunEnd::Kind::kSucceeded) return {};
  if (verdict.end.kind == RunEnd::Kind::kStartFailed) {
    RunFactsForText there = facts;
    there.node = verdict.end.node;
    return verdict.culprit ? start_failure_text(*verdict.culprit, there) : std::string();
  }
  std::string text;
  if (!facts.cause_on_screen) text += message_line(Severity::kError, verdict_line(verdict), facts.colour);
  if (verdict.culprit) text += evidence_lines(*verdict.culprit, facts);
  text += overruled_line(verdict, facts);
  text += doubt_line(verdict, facts);
  text += places_line(verdict, facts);
  text += surroundings_line(verdict, facts);
  if (const FailureRecord* const failure = verdict.failure(); failure != nullptr && !facts.core_dump.empty()) {
    text += message_line(Severity::kNote, fmt::format("core dump of rank {}: {}", failure->rank, facts.core_dump),
                         facts.colour);
  }
  if (verdict.culprit) return text + hint_line(*verdict.culprit, facts);
  const std::string hint = facts.program_hint.empty() ? hint_about_end(verdict) : facts.program_hint;
  return hint.empty() ? text : text + message_line(Severity::kHint, hint, facts.colour);
}

}  // namespace lrun::launcher
