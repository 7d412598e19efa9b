// In: the worker environment of lrun, torchrun, srun or mpirun. Out: this process's place among the ranks. Called by
// the session and by launch().
#include <lrun/error.h>
#include <lrun/world.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/environment.h"
#include "base/numeric_address.h"
#include "base/whole_number.h"
#include "process/pmi_proxy.h"
#include "runtime/session/starter_endpoint.h"

namespace lrun {
namespace {

/// Reads variables, and names the bad one in errors.
class Reader {
 public:
  explicit Reader(const World::Variables& variables) : variables_(variables) {}

  [[nodiscard]] bool has(std::string_view name) const { return variables_.find(name) != variables_.end(); }

  [[nodiscard]] std::string text(std::string_view name) const {
    const auto found = variables_.find(name);
    return found == variables_.end() ? std::string() : found->second;
  }

  template <class Number>
  [[nodiscard]] std::optional<Number> number(std::string_view name) const {
    const auto found = variables_.find(name);
    if (found == variables_.end()) return std::nullopt;
    const std::string& value = found->second;
    Number result{};
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
    if (error == std::errc::result_out_of_range) fail(name, "is '" + value + "', which is too large");
    if (error != std::errc() || end != value.data() + value.size()) fail(name, "is '" + value + "', not a number");
    return result;
  }

  [[nodiscard]] std::optional<int> count(std::string_view name, int least) const {
    const auto value = number<int>(name);
    if (value && *value < least) fail(name, "is " + std::to_string(*value) + ", less than " + std::to_string(least));
    return value;
  }

  [[noreturn]] static void fail(std::string_view name, const std::string& what) {
    throw BadEnvironment("environment variable '" + std::string(name) + "' " + what);
  }

 private:
  const World::Variables& variables_;
};

/// The names under which one kind of launcher gives the ranks.
struct Names {
  WorldSource source;
  std::string_view rank, world_size, local_rank, local_world_size, node_rank, nodes;
};

constexpr Names kTorchNames = {WorldSource::kTorchrun, "RANK",       "WORLD_SIZE",      "LOCAL_RANK",
                               "LOCAL_WORLD_SIZE",     "GROUP_RANK", "GROUP_WORLD_SIZE"};
constexpr Names kSlurmNames = {WorldSource::kSlurm,         "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID",
                               "SLURM_STEP_TASKS_PER_NODE", "SLURM_NODEID", "SLURM_STEP_NUM_NODES"};
/// In a step, too, these may be the job's: they count only if the step's own are missing.
constexpr Names kOldSlurmNames = {WorldSource::kSlurm,         "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID",
                                  "SLURM_STEP_TASKS_PER_NODE", "SLURM_NODEID", "SLURM_NNODES"};
constexpr Names kOpenMpiNames = {WorldSource::kOpenMpi,
                                 "OMPI_COMM_WORLD_RANK",
                                 "OMPI_COMM_WORLD_SIZE",
                                 "OMPI_COMM_WORLD_LOCAL_RANK",
                                 "OMPI_COMM_WORLD_LOCAL_SIZE",
                                 "",
                                 ""};

constexpr Names kPmiNames = {WorldSource::kPmi, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "", ""};

/// Ignored if the process is not one of several.
bool is_task(const Reader& reader, const Names& names) {
  const bool told = reader.has(names.rank) && reader.has(names.world_size) && reader.has(names.local_rank);
  return told && reader.count(names.world_size, 1).value_or(1) > 1;
}

/// A step that srun started. Slurm numbers its own from 0xfffffff0 on: the batch script, and the shell of an
/// interactive salloc, which has the number of tasks of the whole job.
bool is_in_slurm_step(const Reader& reader) {
  constexpr std::uint64_t kFirstOfSlurmItself = 0xfffffff0;
  const std::string step = reader.text("SLURM_STEP_ID");
  return !step.empty() && whole_number<std::uint64_t>(step).value_or(0) < kFirstOfSlurmItself;
}

const Names* slurm_names(const Reader& reader) {
  if (!is_in_slurm_step(reader)) return nullptr;
  const Names& names = reader.has(kSlurmNames.world_size) ? kSlurmNames : kOldSlurmNames;
  return is_task(reader, names) ? &names : nullptr;
}

/// The starter of this task, if no launcher of torch's kind started it. An mpirun below Slurm numbers its tasks itself,
/// and the batch script has SLURM_PROCID too, but no step.
const Names* task_names(const Reader& reader) {
  if (reader.has("RANK")) return nullptr;
  if (is_task(reader, kOpenMpiNames)) return &kOpenMpiNames;
  if (is_task(reader, kPmiNames)) return &kPmiNames;
  return slurm_names(reader);
}

std::vector<std::string> split_at_commas(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const auto comma = text.find(',');
    parts.emplace_back(text.substr(0, comma));
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  return parts;
}

/// RANK where a launcher sets LOCAL_RANK and WORLD_SIZE only.
int rank_from_local(const Reader& reader) {
  const auto local_rank = reader.count("LOCAL_RANK", 0);
  if (!local_rank) Reader::fail("WORLD_SIZE", "is set without 'RANK'");
  const int node_rank = reader.count("GROUP_RANK", 0).value_or(reader.count("NODE_RANK", 0).value_or(0));
  const auto local_world_size = reader.count("LOCAL_WORLD_SIZE", 1);
  if (node_rank > 0 && !local_world_size) {
    Reader::fail("RANK", "is missing, and without 'LOCAL_WORLD_SIZE' it does not follow from node rank and local rank");
  }
  return node_rank * local_world_size.value_or(0) + *local_rank;
}

/// An index must be below its count, and a part at most its whole.
void require_fit(std::string_view name, int value, std::string_view limit_name, int limit, bool is_index) {
  if (is_index ? value < limit : value <= limit) return;
  Reader::fail(name,
               "is " + std::to_string(value) + ", and '" + std::string(limit_name) + "' is " + std::to_string(limit));
}

void check(const World& world, const Names& names) {
  require_fit(names.rank, world.rank, names.world_size, world.world_size, true);
  require_fit(names.local_rank, world.local_rank, names.local_world_size, world.local_world_size, true);
  require_fit(names.local_world_size, world.local_world_size, names.world_size, world.world_size, false);
  if (!names.nodes.empty()) require_fit(names.node_rank, world.node_rank, names.nodes, world.nodes, true);
}

int divided_up(int whole, int part) { return (whole + part - 1) / part; }

/// Entry `node` of Slurm's '2(x3),1': three nodes with two tasks, then one with one.
std::optional<int> slurm_tasks_of_node(std::string_view text, int node) {
  for (const auto& part : split_at_commas(text)) {
    int tasks = 0;
    int times = 1;
    const char* end = part.data() + part.size();
    const auto after = std::from_chars(part.data(), end, tasks).ptr;
    if (tasks < 1) return std::nullopt;
    if (end - after > 2) std::from_chars(after + 2, end, times);
    if (node < times) return tasks;
    node -= times;
  }
  return std::nullopt;
}

std::optional<int> read_local_world_size(const World& world, const Reader& reader, const Names& names) {
  if (names.source != WorldSource::kSlurm) return reader.count(names.local_world_size, 1);
  return slurm_tasks_of_node(reader.text(names.local_world_size), world.node_rank);
}

void read_ranks(World& world, const Reader& reader, const Names& names) {
  world.source = names.source;
  world.world_size = *reader.count(names.world_size, 1);
  const auto rank = reader.count(names.rank, 0);
  world.rank = rank ? *rank : rank_from_local(reader);
  world.node_rank = reader.count(names.node_rank, 0).value_or(reader.count("NODE_RANK", 0).value_or(0));
  const int nodes = names.nodes.empty() ? 0 : reader.count(names.nodes, 1).value_or(0);  // 0: unknown
  world.local_world_size =
      read_local_world_size(world, reader, names).value_or(divided_up(world.world_size, std::max(nodes, 1)));
  const int fewest_nodes = std::max(world.node_rank + 1, divided_up(world.world_size, world.local_world_size));
  world.nodes = nodes > 0 ? nodes : fewest_nodes;
  world.local_rank = reader.count(names.local_rank, 0).value_or(world.rank % world.local_world_size);
  check(world, names);
}

void read_tasks(World& world, const Reader& reader, const Names& names) {
  const auto given = reader.number<int>("WORLD_SIZE");
  read_ranks(world, reader, names);
  if (given && *given != world.world_size) {
    Reader::fail("WORLD_SIZE", "is " + std::to_string(*given) + ", but '" + std::string(names.world_size) + "' is " +
                                   std::to_string(world.world_size));
  }
}

void read_master(World& world, const Reader& reader) {
  world.master_address = without_brackets(reader.text("MASTER_ADDR"));
  const auto port = reader.number<std::uint16_t>("MASTER_PORT");
  if (port && *port == 0) Reader::fail("MASTER_PORT", "is 0, not a port");
  world.master_port = port.value_or(0);
  world.uses_agent_store = reader.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
}

/// Values that the starter of tasks does not give are derived from others.
void complete_master(World& world, const World::Variables& variables) {
  const bool of_slurm = world.source == WorldSource::kSlurm;
  detail::StarterEndpoint endpoint =
      of_slurm ? detail::slurm_endpoint(variables) : detail::mpi_endpoint(variables, world);
  world.master_address = std::move(endpoint.address);
  if (world.master_port == 0) world.master_port = endpoint.port;
  if (world.run_id.empty()) world.run_id = std::move(endpoint.run_id);
}

void read_run(World& world, const Reader& reader) {
  world.run_id = reader.text(reader.has("LRUN_RUN_ID") ? "LRUN_RUN_ID" : "TORCHELASTIC_RUN_ID");
  world.restart_count = reader.count("TORCHELASTIC_RESTART_COUNT", 0).value_or(0);
  world.max_restarts = reader.count("TORCHELASTIC_MAX_RESTARTS", 0).value_or(0);
  world.strategy = reader.text("LRUN_STRATEGY");
  world.backend = reader.text("LRUN_PROCESS_GROUP_BACKEND");
  world.devices = split_at_commas(reader.text("LRUN_DEVICES"));
  world.seed = reader.number<std::uint64_t>("LRUN_SEED");
  const std::string resume = reader.text("LRUN_RESUME");
  world.resume = !resume.empty() && resume != "0";
  if (world.resume && resume != "1") world.resume_path = resume;
}

}  // namespace

World World::from_environment() {
  Variables variables = Environment::of_this_process().variables();
  const auto descriptor = variables.find("PMI_FD");
  const auto proxy = descriptor == variables.end() ? std::nullopt : pmi_proxy(descriptor->second);
  if (proxy) variables.insert_or_assign(std::string(detail::kPmiProxyVariable), std::to_string(*proxy));
  return from_variables(variables);
}

World World::from_variables(const Variables& variables) {
  const Reader reader(variables);
  World world;
  read_run(world, reader);
  const Names* const names = task_names(reader);
  if (names != nullptr) {
    read_tasks(world, reader, *names);
  } else if (reader.has("WORLD_SIZE")) {
    read_ranks(world, reader, kTorchNames);
    if (reader.has("LRUN_RUN_ID")) world.source = WorldSource::kLrun;
  } else if (reader.has("RANK")) {
    Reader::fail("RANK", "is set without 'WORLD_SIZE'");
  }
  // Alone, it is unrelated: Kubernetes sets MASTER_PORT=tcp://… for a Service that is named 'master'.
  if (world.source != WorldSource::kAlone) read_master(world, reader);
  if (names != nullptr) complete_master(world, variables);
  return world;
}

}  // namespace lrun
