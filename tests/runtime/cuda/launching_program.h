#pragma once

#include <string>

namespace lrun::detail::testing {

/// The first argument of the tests' program when it is to be run_launching_program().
inline constexpr char kLaunchingProgram[] = "launch-on-gpu";

/// A user's program that trains in two ranks which it starts itself, both on the first GPU. Prints a line for each
/// network: its name, and how far what came back is from one process on the CPU. \param method  'ddp_spawn' or
/// 'ddp_fork'. \param backend  of the ranks; 'after-cuda': the program uses the GPU before, and prints why that fails.
int run_launching_program(const std::string& method, const std::string& backend);

}  // namespace lrun::detail::testing
