// In: the verdict of a run and the records behind it. Out: the last text for people, result.json, the parent's error
// file. Called by NodeLauncher.
#include "run/run_ending.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <system_error>

#include "base/small_file.h"
#include "cli/misplaced_option.h"
#include "process/program_path.h"
#include "report/parent_error_file.h"
#include "report/torchrun_summary.h"
#include "run/wrong_program.h"
#include "verdict/core_file.h"
#include "verdict/error_file.h"
#include "verdict/hint_table.h"

namespace lrun::launcher {
namespace {

/// The part of an error file that torchrun's summary shows: its call stack, else its message.
std::string error_file_text(const FailureRecord& record) {
  if (record.error_file.empty()) return {};
  const auto file = parse_error_file(read_small_file(record.error_file, ErrorFile::kMostBytes).value_or(""));
  if (!file) return record.error;
  return file->call_stack.empty() ? file->message : file->call_stack;
}

/// Whether all that these workers print comes through lrun or into files that it reads.
bool sees_all_output(const LaunchPlan& plan) {
  const std::vector<WorkerPlan>& workers = plan.nodes.front().workers;
  const auto sees = [&](const WorkerPlan& worker, LogStream stream) {
    const StreamRoute::Way way = route_of(plan.output, worker, stream).way;
    return way == StreamRoute::Way::kCaptured || way == StreamRoute::Way::kFile;
  };
  return std::all_of(workers.begin(), workers.end(), [&](const WorkerPlan& worker) {
    return sees(worker, LogStream::kOut) && sees(worker, LogStream::kErr);
  });
}

/// Where each rank gave up waiting, if all did; else empty. Ranks that waited in different operations never met.
std::string where_all_gave_up(const Verdict& verdict, const std::vector<FailureRecord>& records) {
  if (records.size() != static_cast<std::size_t>(verdict.others.total()) + 1) return {};
  std::vector<RankPlace> places;
  for (const FailureRecord& record : records) {
    if (!is_victim(record.cause) || record.location.empty()) return {};
    places = merge_places(std::move(places), {{.verb = "gave up at",
                                               .verb_all = "gave up at",
                                               .place = record.location,
                                               .count = 1,
                                               .first_rank = record.rank}});
  }
  return describe_places(std::move(places));
}

/// Programs that start ranks themselves do so in each worker, at one port.
bool is_about_port(const FailureRecord& culprit) {
  const HintRule* const rule = find_hint(culprit.error);
  return rule != nullptr && (rule->name == "address-in-use" || rule->name == "store-unreachable");
}

/// As multiprocessing does, and mp.spawn with it.
bool waits_for_own_processes(const Verdict& verdict) {
  return !verdict.places.empty() && std::ranges::all_of(verdict.places, [](const RankPlace& place) {
    return place.place.find("(selectors.py:") != std::string::npos;
  });
}

/// The verdict as it is kept in files.
std::string plain_text(const Verdict& verdict, RunFactsForText facts) {
  facts.colour = false;
  return verdict_text(verdict, facts);
}

}  // namespace

RunFactsForText RunEnding::text_facts(const std::filesystem::path& logs) const {
  return {.grace = plan_.grace.value,
          .program = facts_.program,
          .logs = logs.string(),
          .logs_host = plan_.has_head ? plan_.nodes.front().name : std::string(),
          .python = facts_.python,
          .asked_for_core = plan_.setup.core_dumps,
          .sees_output = sees_all_output(plan_),
          .colour = sink_.colour()};
}

void RunEnding::add_program_hints(const Verdict& verdict, RunFactsForText& facts) const {
  if (!verdict.culprit) {
    if (waits_for_own_processes(verdict)) facts.program_hint = plan_.program_hint;
    return;
  }
  const FailureRecord& culprit = *verdict.culprit;
  facts.program_hint = hint_about_refused_option(culprit, facts_.program, plan_.argv);
  const std::string launcher = plan_.world_size > 1 ? hint_about_failed_launcher(plan_.argv) : std::string();
  if (facts.program_hint.empty()) facts.program_hint = launcher;
  const std::string own_ranks = launcher.empty() ? plan_.program_hint : launcher;
  for (const std::string& hint :
       {hint_about_tool(culprit, plan_.argv), hint_about_misspelt_name(culprit, facts_.folder),
        plan_.setup.folder.given() ? std::string() : hint_about_folder(culprit, facts_.folder, plan_.argv),
        is_about_port(culprit) ? own_ranks : std::string()}) {
    if (facts.tool.empty()) facts.tool = hint;
  }
}

std::string RunEnding::write(const RunResult& result) {
  leave_error_file(environment_, result.verdict, sink_);
  RunFactsForText facts = text_facts(result.logs);
  facts.core_dump = core_dump_of(result);
  add_program_hints(result.verdict, facts);
  facts.gave_up = where_all_gave_up(result.verdict, result.records);
  facts.restarts = restarts_text(result.last_choice, result.verdict.restarts, plan_);
  write_result(result.verdict, result.records, plain_text(result.verdict, facts), facts);
  facts.cause_on_screen = result.cause_on_screen;
  facts.evidence_on_screen = result.evidence_on_screen;
  std::string text;
  if (plan_.personality.failure == Personality::Failure::kTorchrunSummary) {
    text = torchrun_summary(result.verdict, result.records, facts_.program, error_file_text);
  }
  return text.empty() ? verdict_text(result.verdict, facts) : text;
}

Verdict RunEnding::start_failed(const FailureRecord& record) {
  Verdict verdict = judge({RunEnd::Kind::kStartFailed}, {record});
  verdict.restarts = record.attempt;
  RunFactsForText facts = text_facts();
  facts.interpreter = interpreter_of(facts_.executable);
  facts.advice = advice_about(facts_.program, facts_.executable);
  write_result(verdict, {record}, plain_text(verdict, facts), facts);
  sink_.print_of_job(verdict_text(verdict, facts));
  leave_error_file(environment_, verdict, sink_);
  return verdict;
}

void RunEnding::launcher_failed(const std::exception& error, int restarts, const std::vector<FailureRecord>& records) {
  Verdict verdict = judge({RunEnd::Kind::kLauncherFailed}, {});
  verdict.restarts = restarts;
  write_result(verdict, records, message_line(Severity::kError, error.what()), text_facts());
}

/// The text about the core dump, or why there is none. Empty: the user asked for none, or none is to be expected.
std::string RunEnding::core_dump_of(const RunResult& result) const {
  const FailureRecord* const failure = result.verdict.failure();
  const bool by_signal = failure != nullptr && failure->ending == FailureRecord::Ending::kSignaled;
  if (!plan_.setup.core_dumps || !by_signal) return {};
  if (failure->node_rank != plan_.nodes.front().node_rank) return {};  // it is on that node
  std::error_code error;
  const std::string folder = facts_.folder.empty() ? std::filesystem::current_path(error).string() : facts_.folder;
  EndedProcess process{failure->pid, failure->value, folder, failure->core_dumped};
  process.limit_is_zero =
      std::any_of(plan_.setup.limits.begin(), plan_.setup.limits.end(),
                  [](const ResourceLimit& limit) { return limit.resource == RLIMIT_CORE && limit.soft == 0; });
  for (const FailureRecord& record : result.records) process.ranks[record.pid] = record.rank;
  return describe_core_dump(process, CorePattern::of_this_machine());
}

void RunEnding::write_result(const Verdict& verdict, const std::vector<FailureRecord>& records, const std::string& text,
                             const RunFactsForText& facts) {
  record_.write_result(verdict, records, text, verdict.culprit ? hint_text(*verdict.culprit, facts) : std::string());
}

std::string job_result_text(const Verdict& verdict) {
  if (verdict.end.kind == RunEnd::Kind::kSucceeded) return {};
  return verdict.failure() != nullptr ? fmt::format("{} on {}", cause_text(*verdict.culprit), verdict.culprit->node)
                                      : reason_text(verdict.end);
}

}  // namespace lrun::launcher
