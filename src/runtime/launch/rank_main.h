#pragma once

#include <ATen/core/ivalue.h>

#include <functional>

#include "runtime/launch/board.h"

namespace torch::nn {
class Module;
}

namespace lrun::detail {

/// Runs the function of a launch as one of its ranks, and writes on the board what came of it. All that was printed is
/// out when it returns. \return the code that the process is to end with: nothing of the program goes on.
int run_rank(LaunchBoard& board, int local_rank, const std::function<c10::IValue()>& function,
             const torch::nn::Module* module);

/// Whether this process is a rank: run_rank() was called.
bool is_in_rank();

/// Ends a rank that executed the program: what was registered for its exit runs.
[[noreturn]] void end_rank(int code);

/// Returns where end_rank() was not called. Else an exit handler runs, and has come to a launch: the process ends.
void end_where_exiting();

}  // namespace lrun::detail
