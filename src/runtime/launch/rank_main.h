#pragma once

#include <ATen/core/ivalue.h>

#include <functional>

#include "runtime/launch/board.h"

namespace torch::nn {
class Module;
}

namespace lrun::detail {

/// Runs the function of a launch as one of its ranks, and writes its outcome on the board. All output is flushed when
/// it returns. \return the code with which the process has to end: no code of the program runs afterwards.
int run_rank(LaunchBoard& board, int local_rank, const std::function<c10::IValue()>& function,
             const torch::nn::Module* module);

/// Whether this process is a rank: run_rank() was called.
bool is_in_rank();

/// Ends a rank that executed the program: runs its exit handlers.
[[noreturn]] void end_rank(int code);

/// Returns if end_rank() was not called. Otherwise an exit handler has called launch(): the process ends.
void end_where_exiting();

}  // namespace lrun::detail
