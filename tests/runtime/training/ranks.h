#pragma once

#include <ATen/Parallel.h>
#include <lrun/collectives.h>
#include <lrun/thread_group.h>

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace lrun::test {

inline constexpr auto kTestTimeout = std::chrono::seconds(30);

/// Runs `body` as every rank of a thread group and returns what each threw (null: nothing). A rank that throws leaves
/// the group, so that the others end too.
inline std::vector<std::exception_ptr> run_ranks_and_catch(int world_size,
                                                           const std::function<void(int, Collectives&)>& body) {
  at::set_num_threads(1);
  auto group = make_thread_group(world_size, {.timeout = kTestTimeout});
  std::vector<std::exception_ptr> failures(group.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < group.size(); ++rank) {
    threads.emplace_back([&, rank] {
      at::set_num_threads(1);
      try {
        body(static_cast<int>(rank), *group[rank]);
      } catch (...) {
        failures[rank] = std::current_exception();
        group[rank].reset();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  return failures;
}

inline void run_ranks(int world_size, const std::function<void(int, Collectives&)>& body) {
  for (const auto& failure : run_ranks_and_catch(world_size, body)) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace lrun::test
