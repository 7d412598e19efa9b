#pragma once

#include <ATen/core/ivalue.h>
#include <lrun/export.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>

namespace torch::nn {
class Module;
}

namespace lrun {

/// How launch() starts ranks.
struct LaunchOptions {
  /// The number of ranks on this node, one per device. Default: the number of devices that the launcher gave this
  /// process (LRUN_DEVICES), else 1.
  std::optional<int> devices;
  /// 'ddp_spawn', or 'ddp_fork' and its alias 'ddp_notebook'. Default: LRUN_STRATEGY, else ddp_fork in an interactive
  /// interpreter and ddp_spawn elsewhere.
  std::optional<std::string> strategy;
  /// Gets rank 0's parameters and buffers when launch() returns. Create it before the call, the same in every process.
  std::shared_ptr<torch::nn::Module> module;
  /// The number of nodes. On each of them this program was started with MASTER_ADDR, MASTER_PORT and NODE_RANK in its
  /// environment. Default: WORLD_SIZE / devices, and 1 without these variables.
  std::optional<int> num_nodes;
  /// Collectives of the ranks' sessions. Default: LRUN_PROCESS_GROUP_BACKEND, else the best.
  std::string backend;
  /// Seed of the ranks' sessions. Default: LRUN_SEED, else 0.
  std::optional<std::uint64_t> seed;
  /// The time limit, after which the ranks are stopped. 0: none.
  std::chrono::milliseconds timeout{0};
  /// How long a rank may take to end after SIGTERM, or the signal that this process received, before it is killed.
  std::chrono::milliseconds grace = std::chrono::seconds(30);
};

namespace detail {
/// launch() for functions whose result is an IValue.
LRUN_EXPORT c10::IValue launch(const std::function<c10::IValue()>& function, const LaunchOptions& options);
}  // namespace detail

/// Runs `function` once per device of this node, each time in a process that is one rank of a ddp run, and returns rank
/// 0's result. For programs that are started without the launcher: in a debugger, in a notebook, or as part of a larger
/// program.
///
///     auto net = std::make_shared<Net>();
///     const double loss = lrun::launch([&] {
///       lrun::Session session;
///       auto model = session.wrap(net);
///       …
///       return last_loss;
///     }, {.devices = 4, .module = net});
///
/// Method   ddp_spawn executes this program again with the same arguments. Everything before the call happens in every
///          rank, too; there the call runs the function, and the process ends with it. Earlier launches of the program
///          are not repeated in ranks: they return what they returned here. For that the program keeps the result and
///          parameters of each launch, as long as it lives, in an unnamed file in the folder for temporary files
///          (TMPDIR, else /tmp); an interactive interpreter keeps nothing. An earlier launch that threw throws in
///          ranks, too: the same text, and the same class if it is liblrun's or one of `<stdexcept>`, `<system_error>`
///          and `<new>`, else its nearest base. ddp_fork continues in copies of this process. It is refused if these
///          could not work: after CUDA was used, or after threads (also LibTorch's own) were started here.
/// Returns  the function's result, and the parameters and buffers of `options.module`. All other changes by the ranks
///          are lost. On further nodes the values are those of the node's first rank. A result may be nothing, a
///          number, a string, a tensor, or a vector, tuple, optional or c10::Dict of these.
/// Failure  the first rank that throws or fails otherwise ends all ranks. Nothing survives the call or this process: if
///          this process is killed, so are the ranks and their children. Ctrl-Z also stops the ranks and the clock of
///          the timeout until this process continues (if SIGTSTP has its default action).
/// Signals  SIGINT, SIGTERM, SIGHUP and SIGQUIT end the ranks first, as lrun ends its workers, and act on this process
///          when no rank is left. INT, HUP and QUIT go to each rank's process group, TERM to the rank itself; after
///          `grace` every group is killed. A second INT, TERM or QUIT, or a first INT after a failure, kills at once. A
///          second HUP does not.
/// End      a rank of ddp_spawn ends by exit() when the function has returned or thrown: static objects are destroyed,
///          and handlers of atexit() and profilers run, before the launch ends. Objects of main() are not destroyed. A
///          rank of ddp_fork ends by _exit(), which runs none of these: it is a copy of this process, whose handlers
///          would remove this process's files, write its profile and buffers once more, and wait for threads that do
///          not exist. The function itself must write what such a rank should leave behind. A rank that is stopped ends
///          by the signal.
/// Streams  stdout is inherited; stderr passes through lrun, which keeps its last lines; stdin is /dev/null.
/// Started by a launcher  if this process is already a rank (lrun --strategy ddp, torchrun, srun), the function runs in
///                        it. Under `lrun --strategy ddp_spawn` (ddp_fork) there is one process per node, which starts
///                        the node's ranks.
/// Threads  one launch at a time; not within the function.
/// \throws lrun::WorkersFailed   a rank failed, the time limit passed, or a signal arrived; exit_code() is never 0.
/// \throws lrun::Unsupported     the strategy, or a fork, is not possible here; the text says why and what to use.
/// \throws lrun::BadEnvironment  a variable is malformed or contradicts the options.
template <class Function>
auto launch(Function&& function, const LaunchOptions& options = {}) {
  using Result = std::invoke_result_t<Function&>;
  if constexpr (std::is_void_v<Result>) {
    detail::launch(
        [&function] {
          std::invoke(function);
          return c10::IValue();
        },
        options);
  } else {
    return detail::launch([&function] { return c10::IValue(std::invoke(function)); }, options)
        .template to<std::decay_t<Result>>();
  }
}

}  // namespace lrun
