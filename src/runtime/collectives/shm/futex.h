#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace lrun::detail {

/// Sleeps while `word` holds `expected`, at most `timeout`; may wake for no reason. The word may lie in memory shared
/// between processes.
void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected, std::chrono::nanoseconds timeout);

/// Wakes every thread of every process that sleeps on `word`.
void futex_wake_all(const std::atomic<std::uint32_t>& word);

}  // namespace lrun::detail
