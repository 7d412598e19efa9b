// In: the request for output, and the personality. Out: where each stream of each worker goes. Called by make_plan()
// and by those who start or watch workers. Pure.
#include "plan/output_plan.h"

#include <algorithm>
#include <cctype>

#include "base/split.h"
#include "base/user_error.h"
#include "plan/launch_plan.h"

namespace lrun::launcher {
namespace {

constexpr const char* kTorchrunPrefix = "[${role_name}${local_rank}]:";

bool shows(const OutputPlan& plan, const WorkerPlan& worker) {
  if (plan.console.value == ConsoleMode::kQuiet) return false;
  if (plan.console.value == ConsoleMode::kRank0 && worker.rank != 0) return false;
  return plan.local_ranks.empty() ||
         std::find(plan.local_ranks.begin(), plan.local_ranks.end(), worker.local_rank) != plan.local_ranks.end();
}

/// 'rank' is a word before the end, a bracket or a colon.
bool lacks_rank(const std::string& text) {
  const std::size_t at = text.find("rank");
  if (at == std::string::npos) return false;
  if (at > 0 && std::isalnum(static_cast<unsigned char>(text[at - 1])) != 0) return false;
  const std::size_t next = text.find_first_not_of(' ', at + 4);
  return next == std::string::npos || std::string_view("])}>|:").find(text[next]) != std::string_view::npos;
}

}  // namespace

OutputPlan decide_output(const OutputRequest& request, const Personality& personality, const std::string& log_dir,
                         const Environment& environment) {
  const bool maps = request.redirects.given() || request.tee.given();
  const bool as_torchrun = maps || personality.output == Personality::Output::kInherited;
  OutputPlan plan;
  plan.console = request.console;
  plan.captures_all = request.console.given() || !as_torchrun;
  plan.files = log_dir != "/dev/null";
  plan.file_per_rank = personality.file_per_rank && !maps;
  plan.redirects = request.redirects.value;
  plan.tee = request.tee.value;
  plan.local_ranks = request.local_ranks;
  plan.stdout_filters = request.stdout_filters;
  plan.stderr_filters = request.stderr_filters;
  plan.watch = request.watch;
  plan.metrics = request.metrics;
  plan.prefix_template = request.prefix_template;
  if (!plan.prefix_template.empty() && plan.console.value != ConsoleMode::kPrefix) {
    throw UserError("'" + request.console.origin + "' shows lines without the prefix that was given",
                    "use '--output prefix', or leave '--log-line-prefix-template' out");
  }
  plan.timestamps = request.timestamps;
  plan.max_file_bytes = request.max_file_bytes;
  plan.pty = request.pty;
  if (plan.prefix_template.empty() && plan.console.value == ConsoleMode::kPrefix) {
    plan.prefix_template = environment.get("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE").value_or("");
  }
  if (plan.prefix_template.empty() && !plan.captures_all) plan.prefix_template = kTorchrunPrefix;
  return plan;
}

std::string warn_about_emptied_prefix(const std::string& prefix_template) {
  const std::string text = lower_case(prefix_template);
  const auto has = [&text](const char* words) { return text.find(words) != std::string::npos; };
  if (has("$")) return {};
  const std::string begin = "the prefix '" + prefix_template + "' is that of all ranks: ";
  for (const std::string name : {"rank", "local_rank"}) {
    if (has(("{" + name + "}").c_str())) return begin + "write '${" + name + "}' for '{" + name + "}'";
  }
  if (!(has("[]") || has("()") || lacks_rank(text))) return {};
  return begin + "put the template in single quotes, outside of which a shell replaces '${rank}'";
}

std::string name_of_console(const OutputPlan& plan) {
  return plan.captures_all ? name_in(kConsoleModes, plan.console.value) : "inherited";
}

StreamRoute route_of(const OutputPlan& plan, const WorkerPlan& worker, LogStream stream) {
  using Way = StreamRoute::Way;
  if (worker.rank == plan.rank_on_terminal) return {Way::kTerminal, false, false};
  const bool shown = shows(plan, worker);
  if (plan.tee.has(worker.local_rank, stream)) return {Way::kCaptured, plan.files, shown};
  const bool through_lrun = plan.pty || plan.max_file_bytes > 0 || !plan.watch.empty();
  if (plan.files && plan.redirects.has(worker.local_rank, stream)) {
    return {through_lrun ? Way::kCaptured : Way::kFile, true, false};
  }
  const bool is_read = !plan.watch.empty() || (plan.pty && shown);
  if (!plan.captures_all && is_read) return {Way::kCaptured, false, shown, false};
  if (!plan.captures_all) return {shown ? Way::kInherited : Way::kNowhere, false, false};
  const bool file = plan.files && plan.file_per_rank;
  // lrun has no use for the lines: the program gets the console itself, and sees that it is a terminal.
  if (plan.console.value == ConsoleMode::kRaw && shown && !file && !through_lrun)
    return {Way::kInherited, false, false};
  return {Way::kCaptured, file, shown};
}

bool captures_any(const OutputPlan& plan, const std::vector<WorkerPlan>& workers) {
  return std::any_of(workers.begin(), workers.end(), [&](const WorkerPlan& worker) {
    return route_of(plan, worker, LogStream::kOut).way == StreamRoute::Way::kCaptured ||
           route_of(plan, worker, LogStream::kErr).way == StreamRoute::Way::kCaptured;
  });
}

}  // namespace lrun::launcher
