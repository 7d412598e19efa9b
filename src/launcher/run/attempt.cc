// In: the plan, the membership of a round, and what prepare_start() found. Out: workers that run under a supervisor.
// AttemptLoop makes one for each attempt.
#include "run/attempt.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "cluster/slurm.h"
#include "inspect/process_look.h"
#include "inspect/store_clients.h"
#include "plan/horovod_environment.h"
#include "plan/worker_command.h"
#include "plan/worker_environment.h"
#include "process/descendants.h"
#include "run/horovod_facts.h"

namespace lrun::launcher {
namespace {

std::vector<WorkerCommand> worker_commands(const LaunchPlan& plan, const NodePlan& node, const PreparedStart& start,
                                           const WorkerEnvironment& environment, int attempt) {
  std::vector<WorkerCommand> commands;
  commands.reserve(node.workers.size());
  for (const WorkerPlan& worker : node.workers) {
    WorkerCommand command{worker.rank, worker.local_rank, command_of(plan, node, worker, attempt), {}};
    if (command.argv.front() != plan.argv.front()) {
      const auto found = start.wrapper_paths.find(command.argv.front());  // with '%a' each attempt has its own name
      command.path = found != start.wrapper_paths.end() ? found->second : command.argv.front();
    }
    for (auto& [name, value] : environment.of(worker)) command.own_environment.push_back(name + "=" + value);
    command.cpus = worker.cpus;
    commands.push_back(std::move(command));
  }
  return commands;
}

/// Each worker learns from its environment where to report its steps.
void ask_for_progress(std::vector<WorkerCommand>& commands) {
  for (std::size_t i = 0; i < commands.size(); ++i) {
    commands[i].own_environment.push_back(std::string(kProgressVariable) + "=" +
                                          ProgressBoard::variable(kExtraDescriptor, i));
  }
}

}  // namespace

Attempt::Attempt(const Surroundings& surroundings, Membership membership, AttemptFiles files)
    : surroundings_(surroundings),
      membership_(std::move(membership)),
      files_(std::move(files)),
      output_(surroundings_.plan, node(), files_),
      starter_(surroundings_.loop, group_, output_, surroundings_.start.defaults) {}

Attempt::~Attempt() {
  if (surroundings_.copies != nullptr && supervisor_) surroundings_.copies->when_fetched({});
  later_cgroup_.remove();
}

bool Attempt::waits_for_files() const { return surroundings_.copies != nullptr && surroundings_.copies->is_fetching(); }

/// A process that starts in a cgroup that was killed may die at once, so a later round has a cgroup of its own.
void Attempt::make_cgroup() {
  if (membership_.round == 0) return;
  later_cgroup_ = surroundings_.guard.cgroup().inner(fmt::format("attempt-{}", membership_.round));
}

std::optional<StartFailure> Attempt::start() {
  const LaunchPlan& plan = surroundings_.plan;
  const PreparedStart& start = surroundings_.start;
  make_cgroup();
  GroupCommand common{.path = start.executable.path, .folder = start.folder, .limits = start.limits};
  common.cgroup = cgroup().fd();
  common.spawner = surroundings_.spawner.get();
  if (plan.personality.standard_input == Personality::Stdin::kNull || plan.standard_input) {
    null_ = Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (null_) common.standard_input = null_.get();
  }
  RunFacts facts{.master_port = membership_.master_port,
                 .master_addr = membership_.master_addr,
                 .restart_count = membership_.attempt,
                 .error_file_directory = surroundings_.names_error_files ? files_.path().string() : std::string(),
                 .memory_folder = surroundings_.guard.memory().make_again()};
  if (is_horovod(plan)) add_horovod_facts(plan, membership_, facts);
  const WorkerEnvironment environment(plan, node(), start.environment, facts);
  common.shared_environment = environment.shared();
  std::vector<WorkerCommand> commands = worker_commands(plan, node(), start, environment, membership_.attempt);
  if (plan.personality.tells_progress || plan.hang_timeout.value > Duration::zero()) {
    progress_ = ProgressBoard(commands.size());
    common.shared_memory = progress_.fd();
    ask_for_progress(commands);
  }
  starter_.set_commands(std::move(common), std::move(commands));
  surroundings_.guard.begin_workers();
  if (waits_for_files()) return std::nullopt;
  return starter_.start_some();
}

std::optional<int> Attempt::start_more() {
  if (const std::optional<StartFailure> failure = starter_.start_some()) {
    events_.start_failed(*failure);
    return std::nullopt;
  }
  output_.adopt_streams(group_.workers(), surroundings_.logs);
  return static_cast<int>(starter_.left());
}

void Attempt::end_start() {
  starter_.end();
  null_.reset();
  output_.end_start(surroundings_.logs, surroundings_.loop, [this] { terminal_came_back(); });
}

Supervisor::Facts Attempt::supervision() const {
  const LaunchPlan& plan = surroundings_.plan;
  Supervisor::Facts facts;
  facts.records = {.host = membership_.self.name,
                   .attempt = membership_.attempt,
                   .error_folder = files_.path(),
                   .cgroup = cgroup().fd() >= 0 ? surroundings_.guard.cgroup().folder() : std::filesystem::path(),
                   .workers_write_files = WorkerOutput::workers_write_files(plan.output, node())};
  facts.grace = plan.grace.value;
  facts.settle = plan.settle.value;
  facts.settle_for_victims = plan.settle_for_victims;
  facts.settle_at_start = plan.settle_at_start;
  facts.workers_get_term = repeats_term(surroundings_.start.environment);
  facts.look = surroundings_.look;
  facts.guard = &surroundings_.guard;
  return facts;
}

void Attempt::supervise(Events events) {
  events_ = std::move(events);
  supervisor_.emplace(surroundings_.loop, group_, node(), surroundings_.logs, surroundings_.observer, supervision());
  output_.adopt_streams(group_.workers(), surroundings_.logs);
  GradualStart start{.left = static_cast<int>(starter_.left()),
                     .more = [this] { return start_more(); },
                     .over =
                         [this] {
                           end_start();
                           events_.started();
                         }};
  if (waits_for_files()) {
    start.when_ready = [this](std::function<void()> begin) { surroundings_.copies->when_fetched(std::move(begin)); };
  }
  supervisor_->begin(events_.finished, std::move(start));
  if (!is_starting()) end_start();
}

void Attempt::terminal_came_back() {
  const int rank = surroundings_.plan.output.rank_on_terminal;
  const std::vector<RankProcess> left = running();
  const auto others = std::count_if(left.begin(), left.end(), [&](const RankProcess& one) { return one.rank != rank; });
  surroundings_.observer.terminal_came_back(rank, static_cast<int>(others));
}

void Attempt::open_log_files() {
  if (files_.logs() != nullptr) surroundings_.logs.open_files(*files_.logs(), files_.name());
}

const Worker* Attempt::worker_of(pid_t pid) const {
  constexpr int kMostGenerations = 16;
  for (int i = 0; i < kMostGenerations && pid > 1; ++i, pid = parent_of(pid)) {
    for (const Worker& worker : group_.workers()) {
      if (worker.process.pid() == pid) return &worker;
    }
  }
  return nullptr;
}

std::optional<int> Attempt::first_connection(pid_t pid) {
  const Worker* const worker = worker_of(pid);
  if (worker == nullptr || !connected_.insert(worker->rank).second) return std::nullopt;
  if (supervisor_) events_.connected();
  return worker->rank;
}

std::filesystem::path Attempt::written_logs() const {
  for (const Worker& worker : group_.workers()) {
    for (const LogStream stream : kLogStreams) {
      if (!surroundings_.logs.file(worker.local_rank, stream).empty()) return files_.path();
    }
  }
  return {};
}

std::uint64_t Attempt::steps() const {
  std::uint64_t steps = 0;
  for (std::size_t i = 0; i < group_.workers().size(); ++i) steps += progress_.of(i).steps;
  return steps;
}

std::vector<std::pair<int, std::int64_t>> Attempt::first_steps() const {
  std::vector<std::pair<int, std::int64_t>> first;
  for (std::size_t i = 0; i < group_.workers().size(); ++i) {
    const Progress progress = progress_.of(i);
    if (progress.steps > 0) first.emplace_back(group_.workers()[i].rank, progress.first_steady_ns);
  }
  return first;
}

std::vector<RankProcess> Attempt::processes() const {
  std::vector<RankProcess> all;
  for (const Worker& worker : group_.workers()) {
    all.push_back({worker.rank, worker.process.status() ? 0 : worker.process.pid()});
  }
  return all;
}

std::vector<RankProcess> Attempt::running() const {
  std::vector<RankProcess> alive = processes();
  std::erase_if(alive, [](const RankProcess& process) { return process.pid == 0; });
  return alive;
}

std::vector<int> Attempt::without_connection() const {
  std::vector<RankProcess> processes = running();
  std::vector<pid_t> pids;
  for (RankProcess& process : processes) pids.emplace_back(process.pid = working_process(process.pid));
  const std::vector<pid_t> connected = connected_to(membership_.master_port, pids);
  std::vector<int> ranks;
  for (const RankProcess& process : processes) {
    if (std::find(connected.begin(), connected.end(), process.pid) == connected.end()) ranks.push_back(process.rank);
  }
  return ranks;
}

}  // namespace lrun::launcher
