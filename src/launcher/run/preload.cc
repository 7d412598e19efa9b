// In: the plan of a node with --preload. Out: a fork server that has imported its modules, or a warning. Called before
// the node joins its job, so that its workers start as soon as the job begins.
#include "run/preload.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>
#include <vector>

#include "base/signal_names.h"
#include "inspect/run_directory.h"
#include "plan/worker_command.h"
#include "plan/worker_environment.h"
#include "process/exit_codes.h"
#include "run/clean_up.h"
#include "run/end_signals.h"

namespace lrun::launcher {
namespace {

constexpr Duration kQuietImport(5000);
constexpr Duration kImportLimit(300'000);

/// OpenMP reads it when it is loaded, so all ranks have the one of the import.
bool share_threads(const NodePlan& node) {
  return std::all_of(node.workers.begin(), node.workers.end(), [&](const WorkerPlan& worker) {
    return worker.omp_num_threads == node.workers.front().omp_num_threads;
  });
}

/// The part that the workers have in common, as far as it is known before the job has begun.
std::vector<std::string> common_environment(const LaunchPlan& plan, const PreparedStart& start,
                                            const MemoryFolder& memory) {
  const NodePlan& node = plan.nodes.front();
  RunFacts facts;
  facts.memory_folder = memory.path();
  std::vector<std::string> variables = WorkerEnvironment(plan, node, start.environment, facts).shared();
  std::erase_if(variables, [](const std::string& variable) { return variable.starts_with("MASTER_"); });
  const int threads = node.workers.front().omp_num_threads;
  if (threads > 0) variables.push_back(fmt::format("OMP_NUM_THREADS={}", threads));
  return variables;
}

ForkServer::Order order_of(const LaunchPlan& plan, const PreparedStart& start, const Environment& environment,
                           const Guard& guard) {
  const NodePlan& node = plan.nodes.front();
  return {.path = start.executable.path,
          .argv = command_of(plan, node, node.workers.front(), 0),
          .modules = plan.setup.preload.value,
          .learned = state_folder(environment) / "preload",
          .environment = common_environment(plan, start, guard.memory()),
          .folder = start.folder,
          .limits = start.limits};
}

/// 'every worker imports by itself', with the reason.
std::string preload_lost(const LaunchPlan& plan, const std::string& why) {
  return fmt::format("'{}': {}; every worker imports by itself", as_written(plan.setup.preload), why);
}

/// \return the exit code. \param signal_number  that asked for it; 0: the guard was killed
int end_while_preloading(int signal_number, const LaunchPlan& plan, Guard& guard, MessageSink& sink) {
  guard.mark_end(signal_number, end_what_is_left(guard, kShortCleanUpLimit, sink));
  if (signal_number == 0) return kExitRefused;
  sink.note(fmt::format("received {} during the import of '{}'", signal_name(signal_number), plan.setup.preload.value));
  return exit_code_of_signal(signal_number);
}

class ForkServerSpawner final : public Spawner {
 public:
  ForkServerSpawner(ForkServer& server, const LaunchPlan& plan, MessageSink& sink)
      : server_(server), plan_(plan), sink_(sink) {}

  [[nodiscard]] std::size_t at_a_time() const override { return server_.at_a_time(); }
  std::vector<PidFd> start(std::span<const SpawnRequest> requests) override {
    if (server_.is_given_up()) return {};
    std::vector<PidFd> ranks = server_.fork(requests);
    if (ranks.empty()) sink_.warn(preload_lost(plan_, server_.why_given_up()));
    return ranks;
  }
  void begin() override { server_.begin(); }

 private:
  ForkServer& server_;
  const LaunchPlan& plan_;
  MessageSink& sink_;
};

}  // namespace

Preloaded preload(EventLoop& loop, const LaunchPlan& plan, const PreparedStart& start, const Environment& environment,
                  Guard& guard, MessageSink& sink) {
  const Setting<std::string>& modules = plan.setup.preload;
  if (!modules.given()) return {};
  Preloaded outcome;
  std::optional<int> signal_number;
  std::string why;
  const auto end = [&](std::string reason) {
    why = std::move(reason);
    loop.stop();
  };
  const EndSignals signals(loop, plan, guard, [&](int number) {
    signal_number = number;
    loop.stop();
  });
  const Duration limit = plan.start_timeout.value > Duration::zero() ? plan.start_timeout.value : kImportLimit;
  const EventLoop::Timer deadline =
      loop.after(limit, [&] { end(why_late(outcome.server->unfinished_import(), limit, steady_now())); });
  const EventLoop::Timer note = loop.after(
      kQuietImport, [&] { sink.note(fmt::format("still waiting for the imports of '{}'", as_written(modules))); });
  if (share_threads(plan.nodes.front())) {
    try {
      outcome.server = std::make_unique<ForkServer>(
          loop, order_of(plan, start, environment, guard), start.defaults,
          ForkServer::Events{.ready =
                                 [&](const std::string& text) {
                                   if (!text.empty()) sink.note(fmt::format("'{}': {}", as_written(modules), text));
                                   end({});
                                 },
                             .unfit = [&](const std::string& reason) { end(reason); }});
      loop.run();
    } catch (const std::system_error& error) {
      why = error.what();
    }
  } else {
    why = "the workers have different numbers of OpenMP threads";
  }
  if (!why.empty()) sink.warn(preload_lost(plan, why));
  if (!why.empty() || signal_number) outcome.server.reset();
  if (signal_number) outcome.exit_code = end_while_preloading(*signal_number, plan, guard, sink);
  return outcome;
}

std::shared_ptr<Spawner> spawner_of(ForkServer& server, const LaunchPlan& plan, MessageSink& sink) {
  return std::make_shared<ForkServerSpawner>(server, plan, sink);
}

}  // namespace lrun::launcher
