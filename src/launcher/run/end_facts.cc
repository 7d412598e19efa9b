#include "run/end_facts.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "base/small_file.h"
#include "verdict/core_file.h"
#include "verdict/error_file.h"

namespace lrun::launcher {
namespace {

constexpr Duration kFailurePatience(60'000);
constexpr Duration kNoLimit(std::chrono::hours(24 * 365));

}  // namespace

FailureRecord record_of(const StartFailure& failure, const NodePlan& node, int attempt) {
  FailureRecord record;
  record.node = node.name;
  for (const WorkerPlan& worker : node.workers) {
    if (worker.local_rank == failure.local_rank) record.rank = worker.rank;
  }
  record.local_rank = failure.local_rank;
  record.ending = FailureRecord::Ending::kExecFailed;
  record.value = failure.error_number;
  record.cause = Cause::kExecFailed;
  record.attempt = attempt;
  return record;
}

std::system_error error_of(const StartFailure& failure, const NodePlan& node) {
  if (failure.refusal) return *failure.refusal;
  return {failure.error_number, std::generic_category(),
          fmt::format("cannot start worker {} of {}", failure.local_rank, node.local_world_size())};
}

std::string read_own_account(const FailureRecord& record) {
  if (record.error_file.empty()) return {};
  const auto file = parse_error_file(read_small_file(record.error_file, ErrorFile::kMostBytes).value_or(""));
  if (!file) return record.error;
  return file->call_stack.empty() ? file->message : file->call_stack;
}

std::string core_dump_of(const Verdict& verdict, const std::vector<FailureRecord>& records, const LaunchPlan& plan,
                         const std::string& folder) {
  const FailureRecord* const failure = verdict.failure();
  const bool by_signal = failure != nullptr && failure->ending == FailureRecord::Ending::kSignaled;
  if (!plan.setup.core_dumps || !by_signal) return {};
  if (failure->node_rank != plan.nodes.front().node_rank) return {};  // it is on that node
  std::error_code error;
  EndedProcess process{failure->pid, failure->value,
                       folder.empty() ? std::filesystem::current_path(error).string() : folder, failure->core_dumped};
  process.limit_is_zero =
      std::any_of(plan.setup.limits.begin(), plan.setup.limits.end(),
                  [](const ResourceLimit& limit) { return limit.resource == RLIMIT_CORE && limit.soft == 0; });
  for (const FailureRecord& record : records) process.ranks[record.pid] = record.rank;
  return core_dump_in_words(process, CorePattern::of_this_machine());
}

std::string what_became_of_job(const Verdict& verdict) {
  if (verdict.end.kind == RunEnd::Kind::kSucceeded) return {};
  return verdict.failure() != nullptr ? cause_in_words(*verdict.culprit) : reason_in_words(verdict.end);
}

RunFactsForText text_facts(const LaunchPlan& plan, const std::string& program, const std::string& python,
                           const std::filesystem::path& logs, bool colour) {
  return {.grace = plan.grace.value,
          .program = program,
          .logs = logs.string(),
          .python = python,
          .asked_for_core = plan.setup.core_dumps,
          .colour = colour};
}

std::string plain_text(const Verdict& verdict, RunFactsForText facts) {
  facts.colour = false;
  return verdict_text(verdict, facts);
}

Duration console_patience(RunEnd::Kind kind) {
  switch (kind) {
    case RunEnd::Kind::kSucceeded:
      return kNoLimit;
    case RunEnd::Kind::kWorkerFailed:
      return kFailurePatience;
    default:
      return kLastWordPatience;
  }
}

}  // namespace lrun::launcher
