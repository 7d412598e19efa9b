#pragma once

#include <chrono>

namespace lrun::inline core {

using SteadyTime = std::chrono::steady_clock::time_point;
using WallTime = std::chrono::system_clock::time_point;

inline SteadyTime steady_now() { return std::chrono::steady_clock::now(); }

}  // namespace lrun::inline core
