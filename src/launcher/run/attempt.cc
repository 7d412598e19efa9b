#include "run/attempt.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "base/appended_file.h"
#include "inspect/store_clients.h"
#include "plan/horovod_environment.h"
#include "plan/worker_command.h"
#include "plan/worker_environment.h"
#include "process/descendants.h"
#include "run/horovod_facts.h"

namespace lrun::launcher {
namespace {

std::vector<WorkerCommand> worker_commands(const LaunchPlan& plan, const NodePlan& node, const WorkerStart& start,
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

}  // namespace

Attempt::Attempt(const Surroundings& surroundings, Membership membership, const Folder* logs, std::string name)
    : surroundings_(surroundings),
      membership_(std::move(membership)),
      logs_(logs),
      name_(std::move(name)),
      folder_(logs == nullptr ? std::filesystem::path() : logs->path() / name_),
      output_(surroundings_.plan, node(), logs, name_) {}

Attempt::~Attempt() { later_cgroup_.remove(); }

std::optional<StartFailure> Attempt::start() {
  const LaunchPlan& plan = surroundings_.plan;
  const WorkerStart& start = surroundings_.start;
  command_ = {.path = start.executable.path, .folder = start.folder, .limits = start.limits};
  if (membership_.round > 0)
    later_cgroup_ = surroundings_.guard.cgroup().inner(fmt::format("attempt-{}", membership_.round));
  command_.cgroup = membership_.round > 0 ? later_cgroup_.fd() : surroundings_.guard.cgroup().fd();
  if (plan.personality.standard_input == Personality::Stdin::kNull || plan.standard_input) {
    nothing_ = Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (nothing_) command_.standard_input = nothing_.get();
  }
  RunFacts facts{.master_port = membership_.master_port,
                 .master_addr = membership_.master_addr,
                 .restart_count = membership_.attempt,
                 .error_file_directory = surroundings_.names_error_files ? folder_.string() : std::string()};
  if (is_horovod(plan)) add_horovod_facts(plan, membership_, facts);
  const WorkerEnvironment environment(plan, node(), start.environment, facts);
  command_.shared_environment = environment.shared();
  commands_ = worker_commands(plan, node(), start, environment, membership_.attempt);
  if (plan.personality.tells_progress || plan.hang_timeout.value > Duration::zero()) hand_out_progress();
  surroundings_.guard.begin_workers();
  return start_some();
}

/// Returns after a few hundredths of a second, so that everything else is heard again.
std::optional<StartFailure> Attempt::start_some() {
  constexpr Duration kMoment(20);
  constexpr std::size_t kFewest = 64;
  const SteadyTime end = steady_now() + kMoment;
  const std::size_t before = group_.workers().size();
  while (is_starting() && (group_.workers().size() < before + kFewest || steady_now() < end)) {
    if (std::optional<StartFailure> failure = start_next()) return failure;
  }
  return std::nullopt;
}

/// A few at a time: the descriptors that their start needs are open together.
std::optional<StartFailure> Attempt::start_next() {
  constexpr std::size_t kAtATime = 8;
  const std::size_t first = group_.workers().size();
  const std::span next = std::span(commands_).subspan(first, std::min(kAtATime, commands_.size() - first));
  try {
    output_.prepare(next, first);
  } catch (const std::system_error& error) {
    group_.end();
    return StartFailure{.local_rank = next.front().local_rank, .error_number = error.code().value(), .refusal = error};
  }
  auto failure = group_.start(surroundings_.loop, command_, next, surroundings_.start.defaults);
  output_.close_workers_ends();
  return failure;
}

std::optional<int> Attempt::start_more() {
  if (const std::optional<StartFailure> failure = start_some()) {
    events_.start_failed(*failure);
    return std::nullopt;
  }
  output_.take_over(group_.workers(), surroundings_.logs);
  return static_cast<int>(commands_.size() - group_.workers().size());
}

void Attempt::end_start() {
  commands_.clear();
  nothing_.reset();
  output_.end_start(surroundings_.logs, surroundings_.loop, [this] { terminal_came_back(); });
}

void Attempt::supervise(Events events) {
  events_ = std::move(events);
  const LaunchPlan& plan = surroundings_.plan;
  const bool has_cgroup = (membership_.round > 0 ? later_cgroup_ : surroundings_.guard.cgroup()).fd() >= 0;
  Supervisor::Facts facts;
  facts.records = {.host = membership_.self.name,
                   .attempt = membership_.attempt,
                   .error_folder = folder_,
                   .cgroup = has_cgroup ? surroundings_.guard.cgroup().folder() : std::filesystem::path(),
                   .workers_write_files = WorkerOutput::workers_write_files(plan.output, node())};
  facts.grace = plan.grace.value;
  facts.settle = plan.settle.value;
  facts.settle_for_victims = plan.settle_for_victims;
  facts.settle_at_start = plan.settle_at_start;
  facts.look = surroundings_.look;
  facts.guard = &surroundings_.guard;
  supervisor_.emplace(surroundings_.loop, group_, node(), surroundings_.logs, surroundings_.observer, std::move(facts));
  output_.take_over(group_.workers(), surroundings_.logs);
  supervisor_->begin(events_.finished, {.left = static_cast<int>(commands_.size() - group_.workers().size()),
                                        .more = [this] { return start_more(); },
                                        .over =
                                            [this] {
                                              end_start();
                                              events_.started();
                                            }});
  if (!is_starting()) end_start();
}

void Attempt::terminal_came_back() {
  const int rank = surroundings_.plan.output.rank_on_terminal;
  const std::vector<RankProcess> left = running();
  const auto others = std::count_if(left.begin(), left.end(), [&](const RankProcess& one) { return one.rank != rank; });
  surroundings_.observer.terminal_came_back(rank, static_cast<int>(others));
}

void Attempt::open_log_files() {
  if (logs_ != nullptr) surroundings_.logs.open_files(*logs_, name_);
}

void Attempt::make_rank_folders() const {
  const Folder folder = logs_ != nullptr ? logs_->inner(name_) : Folder();
  if (!folder) return;
  for (const WorkerPlan& worker : node().workers) (void)folder.inner(std::to_string(worker.local_rank));
}

Fd Attempt::open_file(const std::string& file) const {
  return logs_ != nullptr ? open_to_append(*logs_, name_ + "/" + file, 0666) : Fd();
}

std::optional<int> Attempt::first_connection(pid_t pid) {
  constexpr int kMostGenerations = 16;
  for (int i = 0; i < kMostGenerations && pid > 1; ++i, pid = parent_of(pid)) {
    for (const Worker& worker : group_.workers()) {
      if (worker.process.pid() != pid) continue;
      return connected_.insert(worker.rank).second ? std::optional(worker.rank) : std::nullopt;
    }
  }
  return std::nullopt;
}

std::filesystem::path Attempt::written_logs() const {
  for (const Worker& worker : group_.workers()) {
    for (const LogStream stream : {LogStream::kOut, LogStream::kErr}) {
      if (!surroundings_.logs.file(worker.local_rank, stream).empty()) return folder_;
    }
  }
  return {};
}

void Attempt::hand_out_progress() {
  progress_ = ProgressBoard(commands_.size());
  command_.shared_memory = progress_.fd();
  for (std::size_t i = 0; i < commands_.size(); ++i) {
    commands_[i].own_environment.push_back(std::string(kProgressVariable) + "=" +
                                           ProgressBoard::variable(kExtraDescriptor, i));
  }
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

std::vector<int> Attempt::without_connection(int store_port) const {
  const std::vector<RankProcess> processes = running();
  std::vector<pid_t> pids;
  for (const RankProcess& process : processes) pids.push_back(process.pid);
  const std::vector<pid_t> connected = connected_to(store_port, pids);
  std::vector<int> ranks;
  for (const RankProcess& process : processes) {
    if (std::find(connected.begin(), connected.end(), process.pid) == connected.end()) ranks.push_back(process.rank);
  }
  return ranks;
}

}  // namespace lrun::launcher
