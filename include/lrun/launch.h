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
  /// Ranks on this node, one for each device. Default: the devices that the launcher gave this process (LRUN_DEVICES),
  /// else 1.
  std::optional<int> devices;
  /// 'ddp_spawn', or 'ddp_fork' and its other name 'ddp_notebook'. Default: LRUN_STRATEGY, else ddp_fork in an
  /// interactive interpreter and ddp_spawn elsewhere.
  std::optional<std::string> strategy;
  /// Its parameters and buffers are rank 0's when launch() returns. Made before the call, in every process alike.
  std::shared_ptr<torch::nn::Module> module;
  /// Nodes on each of which this program was started with MASTER_ADDR, MASTER_PORT and NODE_RANK in its environment.
  /// Default: WORLD_SIZE / devices, and 1 without these variables.
  std::optional<int> num_nodes;
  /// Collectives of the ranks' sessions. Default: LRUN_PROCESS_GROUP_BACKEND, else the best.
  std::string backend;
  /// Of the ranks' sessions. Default: LRUN_SEED, else 0.
  std::optional<std::uint64_t> seed;
  /// How long the ranks may take; then they are stopped. 0: as long as they need.
  std::chrono::milliseconds timeout{0};
  /// How long a rank that is told to end (SIGTERM, or the signal this process got) may take before it is killed.
  std::chrono::milliseconds grace = std::chrono::seconds(30);
};

namespace detail {
/// launch() for functions whose result was made an IValue.
LRUN_EXPORT c10::IValue launch(const std::function<c10::IValue()>& function, const LaunchOptions& options);
}  // namespace detail

/// Runs `function` once on every device of this node, each time in a process of its own that is one rank of a ddp run,
/// and returns what it returned on rank 0. For a program that is started without the launcher: in a debugger, a
/// notebook, as part of a larger one.
///
///     auto net = std::make_shared<Net>();
///     const double loss = lrun::launch([&] {
///       lrun::Session session;
///       auto model = session.wrap(net);
///       …
///       return last_loss;
///     }, {.devices = 4, .module = net});
///
/// Method   ddp_spawn executes this program again with the same arguments: everything before the call happens in every
///          rank, too, where the call runs the function and the process ends with it. Earlier launches of the program
///          are not repeated there: they return what they returned here. For that the program keeps, in a file without
///          a name in the folder for temporary files (TMPDIR, else /tmp), what each launch returned: a result and the
///          parameters each time, for as long as it lives, and nothing in an interactive interpreter. ddp_fork goes on
///          in copies of this process; it is refused where those could not work: after CUDA was used, or threads
///          (LibTorch's own, too) were started here.
///          An earlier launch that threw throws there, too: the same text, and the same class where that is liblrun's
///          or one of <stdexcept>, <system_error> and <new>, else its nearest base.
/// Returns  the function's result and the parameters and buffers of `options.module`, nothing else: whatever else the
///          ranks changed is theirs. On further nodes they are those of the node's first rank. Results are nothing,
///          numbers, strings, tensors, and vectors, tuples, optionals and c10::Dict of those.
/// Failure  the first rank that throws or ends otherwise ends all. Nothing survives the call, nor this process: also
///          when it is killed, the ranks and what they started are. Ctrl-Z stops them with it, and they and the timeout
///          go on when it does (where SIGTSTP has its default action). SIGINT, SIGTERM, SIGHUP and SIGQUIT end the
///          ranks first and act on this process when they are gone.
/// End      a rank of ddp_spawn ends by exit() when the function has returned or thrown: static objects are destroyed,
///          and handlers of atexit() and profilers run; the launch lasts until they have. Objects of main() are left
///          alone. A rank of ddp_fork ends by _exit(), and nothing of that runs: it is a copy of this process, whose
///          handlers would remove this process's files, write its profile and buffers once more, and wait for threads
///          that are not there; the function itself has to write what such a rank is to leave behind. A rank that is
///          stopped ends by its signal.
/// Streams  stdout is inherited; stderr passes through, for its last lines; stdin is /dev/null.
/// Started by a launcher  where this process is a rank already (lrun --strategy ddp, torchrun, srun), the function runs
///          in it. Under `lrun --strategy ddp_spawn` (ddp_fork) it is one process a node and starts the node's ranks.
/// Threads  one launch at a time; not within the function.
/// \throws lrun::WorkersFailed   a rank failed, time was over, or a signal came; exit_code() is never 0.
/// \throws lrun::Unsupported     the strategy, or the fork, is not possible here; the text says why and what is.
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
