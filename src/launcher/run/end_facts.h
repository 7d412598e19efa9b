#pragma once

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "base/duration.h"
#include "plan/launch_plan.h"
#include "process/worker_group.h"
#include "report/verdict_text.h"
#include "verdict/judge.h"

namespace lrun::launcher {

/// The record of a worker that could not be started.
FailureRecord record_of(const StartFailure& failure, const NodePlan& node, int attempt);

/// The same as an exception, for what the machine lacks (processes, descriptors).
std::system_error error_of(const StartFailure& failure, const NodePlan& node);

/// What torchrun's summary shows of an error file: its call stack, else its message.
std::string read_own_account(const FailureRecord& record);

/// Where the core dump of Verdict::failure() is, in words, or why there is none; empty: nobody asked for one, or its
/// end asks for none.
/// \param folder  that the workers started in; empty: lrun's own
std::string core_dump_of(const Verdict& verdict, const std::vector<FailureRecord>& records, const LaunchPlan& plan,
                         const std::string& folder);

/// For the launchers that the job did not need: empty when it succeeded.
std::string what_became_of_job(const Verdict& verdict);

/// What the texts about a run's end need besides its verdict. `logs` is empty where there are none.
RunFactsForText text_facts(const LaunchPlan& plan, const std::string& program, const std::string& python,
                           const std::filesystem::path& logs, bool colour);

/// The verdict as it is kept in files.
std::string plain_text(const Verdict& verdict, RunFactsForText facts);

/// How long a console that takes nothing may keep an ended run. Output of a run that went its way is worth any wait
/// (`lrun … | less`); who interrupted it does not want one.
Duration console_patience(RunEnd::Kind kind);

/// The same once a signal came meanwhile, for the last words alone.
inline constexpr Duration kHurriedPatience(1000);

/// The same for those who have no loop any more: to say a last word, at most.
inline constexpr Duration kLastWordPatience(5000);

}  // namespace lrun::launcher
