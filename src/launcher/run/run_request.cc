// In: a request, and the nodes that it may use. Out: a plan that is shown or launched, and the exit code of lrun.
// Called by main() and, on hosts that the user names, by the agent.
#include "run/run_request.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/nearest.h"
#include "base/numeric_address.h"
#include "base/user_error.h"
#include "base/whole_number.h"
#include "cli/misplaced_option.h"
#include "cluster/outer_launcher.h"
#include "cluster/program_facts.h"
#include "plan/make_plan.h"
#include "plan/python_program.h"
#include "plan/run_id.h"
#include "plan/show_plan.h"
#include "plan/strategy_choice.h"
#include "plan/task_place.h"
#include "plan/worker_environment.h"
#include "process/exit_codes.h"
#include "report/diagnostics.h"

namespace lrun::launcher {
namespace {

ProgramFacts program_facts(const LaunchRequest& request, const Environment& of_workers) {
  ProgramFacts facts = look_at_program(request.command.front(), of_workers, request.setup.folder.value);
  if (!is_given_to_python(request, facts)) return facts;
  facts.python = choose_python_here({request.python.value, request.python.origin}, of_workers);
  return facts;
}

void note_python(const LaunchPlan& plan, MessageSink& sink) {
  if (!plan.python) return;
  const PythonChoice& python = *plan.python;
  sink.note(fmt::format("python: {} ({})", python.path.empty() ? python.program : python.path, python.reason));
}

void print_warnings(const LaunchPlan& plan, MessageSink& sink) {
  for (const std::string& warning : plan.warnings) sink.warn(warning);
  for (const std::string& line : plan.notes) sink.note(line);
}

/// For a job of a manager whose list of hosts is not there, where nobody has said how many nodes there are: it would be
/// one of several.
void add_warnings_about_lists(LaunchPlan& plan, const LaunchRequest& request, const Environment& of_workers) {
  for (const char* const name : {"PBS_NODEFILE", "PE_HOSTFILE"}) {
    const std::string file = of_workers.get(name).value_or("");
    if (file.empty() || request.num_nodes.given() || ::access(file.c_str(), R_OK) == 0) continue;
    plan.warnings.push_back(fmt::format(
        "'{}={}' cannot be read: this run has one node; '--num-nodes 1' says that it is meant", name, file));
  }
}

/// 'train.py : -np 2 train.py' of mpirun. \return a warning about what may be another use of the colon; empty: none
/// \throws UserError  an option of mpirun is behind it
std::string warn_of_colon(const LaunchRequest& request, int world_size) {
  constexpr std::array<std::string_view, 6> kOfMpirun{"-np", "-n", "--np", "-host", "--host", "-H"};
  const std::vector<std::string>& words = request.command;
  const auto colon = std::find(words.begin(), words.end(), ":");
  if (words.end() - colon < 2 || !(colon + 1)->starts_with('-')) return {};
  const bool is_of_mpirun = std::find(kOfMpirun.begin(), kOfMpirun.end(), *(colon + 1)) != kOfMpirun.end();
  if (!is_of_mpirun || words.end() - colon < 3) {
    return fmt::format("':' and all behind it are arguments of '{}': a run has one program", words.front());
  }
  const auto more = whole_number<int>(*(colon + 2));
  const bool is_same = more && *more > 0 && std::equal(words.begin(), colon, colon + 3, words.end());
  const std::string part = fmt::format("{}{}", request.module ? "-m " : "", words.front());
  throw UserError(
      "':' separates programs in mpirun, and a run of lrun has one",
      is_same ? fmt::format("for {} workers write 'lrun -n {} {}'", world_size + *more, world_size + *more, part)
              : "start one program, which does the part of its rank: workers find it in RANK");
}

/// Warnings about what stands in the text of PROGRAM.
void add_warnings_about_words(LaunchPlan& plan, const LaunchRequest& request, const ProgramFacts& program) {
  const ReadProgram read = program_reader(request.setup.folder.value);
  std::string misplaced = warn_about_misplaced_option(plan, request, program, read);
  if (!misplaced.empty()) plan.warnings.push_back(std::move(misplaced));
  std::string colon = warn_of_colon(request, plan.world_size);
  if (!colon.empty()) plan.warnings.push_back(std::move(colon));
  const ProgramText program_text = text_of(request, program);
  const std::optional<std::string> script = program_text.is_python ? read(program_text.file) : std::nullopt;
  if (script == "") plan.warnings.push_back(fmt::format("'{}' is empty", program_text.file));
  if (script && plan.world_size > 1 && fixes_rank(*script)) {
    plan.warnings.push_back(
        fmt::format("'{}' gives init_process_group() a rank or world_size of its own, which all {} workers would have: "
                    "leave both out",
                    program_text.file, plan.world_size));
  }
  if (!script || !spawns_ranks(*script)) return;
  const std::string what = fmt::format("'{}' starts its ranks itself, with 'mp.spawn'", program_text.file);
  constexpr std::string_view kAdvice = "run it without lrun, or call its function once, with the rank from RANK";
  plan.warnings.push_back(fmt::format(
      "{}{}: {}", what, plan.world_size > 1 ? fmt::format(", and each of {} workers would do so", plan.world_size) : "",
      kAdvice));
  if (plan.world_size > 1) plan.program_hint = fmt::format("{}: {}", what, kAdvice);
}

/// The variables of a job of pods that are missing, where WORLD_SIZE is there.
std::vector<std::string> missing_of_pod(const Environment& of_workers) {
  std::vector<std::string> missing;
  if (!of_workers.has("KUBERNETES_SERVICE_HOST") || !of_workers.has("WORLD_SIZE")) return missing;
  for (const char* const name : {"MASTER_ADDR", "MASTER_PORT", "RANK"}) {
    if (!of_workers.has(name)) missing.emplace_back(name);
  }
  return missing;
}

/// The option that has the part of a variable which people set by hand for each rank.
constexpr std::pair<std::string_view, std::string_view> kOptionsForVariables[] = {{"WORLD_SIZE", "-n"},
                                                                                  {"LOCAL_WORLD_SIZE", "-n"},
                                                                                  {"RANK", "--node-rank"},
                                                                                  {"GROUP_RANK", "--node-rank"},
                                                                                  {"NODE_RANK", "--node-rank"},
                                                                                  {"GROUP_WORLD_SIZE", "--num-nodes"},
                                                                                  {"MASTER_PORT", "--master-port"},
                                                                                  {"MASTER_ADDR", "--rdzv-endpoint"}};

/// For somebody who starts each rank by a command of its own, as people do who know the variables of torch. Empty: that
/// is not so.
std::string warn_of_ranks_by_hand(const LaunchPlan& plan, const Environment& environment) {
  const auto rank = whole_number<int>(environment.get("RANK").value_or(""));
  const auto world_size = whole_number<int>(environment.get("WORLD_SIZE").value_or(""));
  if (plan.world_size > 1 || !rank || !world_size || *world_size < 2 || *rank < 0 || *rank >= *world_size) return {};
  const std::string host = environment.get("MASTER_ADDR").value_or("");
  const bool is_reached_by_others = !host.empty() && loopback_address_of(host).empty();
  const auto port = whole_number<std::uint16_t>(environment.get("MASTER_PORT").value_or(""));
  return fmt::format(
      "RANK and WORLD_SIZE are not read, so that this is rank 0 of 1: '-n {0}' starts {0} ranks here at once; for one "
      "on each of {0} hosts: '--num-nodes {0} --node-rank {1} --rdzv-endpoint {2}'",
      *world_size, *rank, text_of(Endpoint{is_reached_by_others ? host : "HOST", port.value_or(kPortOfStatic)}));
}

/// For somebody who has set RANK or MASTER_ADDR by hand.
void note_replaced_variables(const LaunchPlan& plan, const Environment& of_workers, MessageSink& sink) {
  std::vector<std::string> replaced = replaced_variables(plan, of_workers);
  std::vector<std::string> options;
  for (std::string& variable : replaced) {
    const std::string_view name = std::string_view(variable).substr(0, variable.find('='));
    for (const auto& [known, option] : kOptionsForVariables) {
      std::string quoted = fmt::format("'{}'", option);
      const bool is_new = std::find(options.begin(), options.end(), quoted) == options.end();
      if (name == known && is_new) options.push_back(std::move(quoted));
    }
    variable = "'" + variable + "'";
  }
  if (replaced.empty()) return;
  const std::string_view sets = options.size() > 1 ? "set" : "sets";
  const std::string_view what = replaced.size() > 1 ? "them" : "it";
  sink.note(fmt::format("this run has {}, with its own values in place of {}{}", counted(plan.world_size, "worker"),
                        join_words(replaced),
                        options.empty() ? "" : fmt::format("; {} {} {}", join_words(options), sets, what)));
}

/// True for somebody who says the number of ranks or where they meet, or starts each by hand, to a run that reads none
/// of it.
bool names_another_world(const LaunchPlan& plan, const Environment& of_workers) {
  if (plan.rendezvous || is_worker(of_workers)) return false;
  const auto is_other = [&](const char* name, const std::string& own) {
    const auto value = of_workers.get(name);
    return value && *value != own;
  };
  const bool is_service = of_workers.get("MASTER_PORT").value_or("").starts_with("tcp://");  // Kubernetes sets those
  const auto is_set = [&](const char* name) { return of_workers.has(name); };
  return is_set("RANK") || is_set("LOCAL_RANK") || is_set("MASTER_ADDR") ||
         is_other("WORLD_SIZE", std::to_string(plan.world_size)) ||
         (!is_service && is_other("MASTER_PORT", std::to_string(plan.master_port.value_or(0))));
}

/// Lightning reads NODE_RANK of its nodes. For lrun the nodes' order is its own, unless it is asked for one.
void add_warning_about_node_rank(LaunchPlan& plan, const LaunchRequest& request, const Environment& of_workers) {
  const bool is_open =
      plan.rendezvous && !plan.rendezvous->node_rank && request.rendezvous.endpoint.source != Source::kScheduler;
  const auto typed = of_workers.get("NODE_RANK");
  if (!is_open || !typed || is_worker(of_workers)) return;
  plan.warnings.push_back(
      fmt::format("'NODE_RANK={}' is not read: '--node-rank' gives the rank of this node, from 0", *typed));
}

/// A plan that does without what this node lacks, by which the other nodes of its job are reached. Empty: there is
/// none.
std::optional<LaunchPlan> smallest_plan(LaunchRequest request, const Environment& of_workers,
                                        const Allocation& allocation, const ProgramFacts& program) {
  request.accelerator = {DeviceKind::kCpu, Source::kDefault, "--accelerator"};
  request.devices = {{DeviceRequest::Kind::kCount, 1}, Source::kDefault, "--devices"};
  request.nproc_per_node = {};
  try {
    LaunchPlan plan = make_plan(request, of_workers, allocation, program, make_run_id());
    return plan.rendezvous ? std::optional(std::move(plan)) : std::nullopt;
  } catch (const UserError&) {
    return std::nullopt;
  }
}

}  // namespace

void check_for_all_nodes(const LaunchRequest& request, const Environment& of_workers) {
  check_program(choose_strategy(request.strategy, 1, 1), request, program_facts(request, of_workers));
}

int run_request(const LaunchRequest& request, const Allocation& allocation, const Environment& own,
                const Environment& of_workers, const LauncherOutput& output) {
  const ProgramFacts program = program_facts(request, of_workers);
  const std::string& given_id = allocation.run_id;
  LaunchPlan plan;
  try {
    plan = make_plan(request, of_workers, allocation, program, given_id.empty() ? make_run_id() : given_id);
  } catch (const ErrorOfAllTasks&) {
    throw;
  } catch (const UserError& error) {
    // Where one command starts all launchers, the others are there and wait for this one.
    const bool others_wait = request.rendezvous.shares_screen && request.dry_run == DryRun::kNo;
    const auto smallest = others_wait ? smallest_plan(request, of_workers, allocation, program) : std::nullopt;
    if (!smallest) throw;
    return end_unstarted(error, *smallest, request, own, output.sink);
  }
  plan.has_head = !given_id.empty();
  add_warnings_about_words(plan, request, program);
  add_warnings_about_lists(plan, request, of_workers);
  add_warning_about_node_rank(plan, request, of_workers);
  // Warnings stand below the long text of a plan, where a person sees them.
  const bool is_shown = request.dry_run != DryRun::kNo;
  const bool shows = is_shown && (!plan.is_of_one_rank || speaks_for_job(plan));
  if (shows && !print_to_stdout(show_plan(plan, of_workers, request.dry_run), output.sink)) return kExitRefused;
  if (speaks_for_job(plan)) {
    if (request.verbosity > 0 && !is_shown) note_python(plan, output.sink);
    print_warnings(plan, output.sink);
    const bool is_other_world = names_another_world(plan, of_workers);
    const std::vector<std::string> missing = missing_of_pod(of_workers);
    if (is_other_world && !missing.empty()) {
      output.sink.warn(
          fmt::format("this pod runs alone, with {}: WORLD_SIZE is {}, but {} {} missing, without which pods "
                      "do not meet",
                      counted(plan.world_size, "worker"), of_workers.get("WORLD_SIZE").value_or(""),
                      join_words(missing), missing.size() == 1 ? "is" : "are"));
    }
    const bool tells = is_other_world && missing.empty();
    const std::string by_hand = tells ? warn_of_ranks_by_hand(plan, of_workers) : std::string();
    if (!by_hand.empty()) output.sink.warn(by_hand);
    if (request.verbosity > 0 || (tells && by_hand.empty())) note_replaced_variables(plan, of_workers, output.sink);
  }
  return is_shown ? 0 : launch(plan, request, own, output);
}

}  // namespace lrun::launcher
