#pragma once

#include <lrun/session.h>

#include <functional>
#include <utility>

#include "runtime/training/ranks.h"

namespace lrun::test {

/// Runs `body` with a session as every rank of a thread group. `options_of` gives the options of a rank; world and
/// connect are set here. Without it: no banner.
inline void run_sessions(
    int world_size, const std::function<void(Session&)>& body,
    const std::function<SessionOptions(int)>& options_of = [](int) { return SessionOptions{.banner = false}; }) {
  at::set_num_threads(1);
  auto group = make_thread_group(world_size, {.timeout = kTestTimeout});
  std::vector<std::exception_ptr> failures(group.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < group.size(); ++rank) {
    threads.emplace_back([&, rank] {
      at::set_num_threads(1);
      try {
        SessionOptions options = options_of(static_cast<int>(rank));
        options.world.emplace();
        options.world->rank = options.world->local_rank = static_cast<int>(rank);
        options.world->world_size = options.world->local_world_size = world_size;
        options.connect = [&](const World&) { return std::move(group[rank]); };
        Session session(std::move(options));
        body(session);
      } catch (...) {
        failures[rank] = std::current_exception();
        group[rank].reset();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace lrun::test
