#pragma once

#include <ATen/Parallel.h>
#include <lrun/collectives.h>
#include <lrun/session.h>
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

/// One rank of a thread group. The group's element is its own: a Session may take it.
using RankBody = std::function<void(int rank, std::unique_ptr<Collectives> collectives)>;

/// Runs `body` as every rank of a thread group and returns the exception of each (null: none). A rank that throws
/// leaves the group, so that the others end too.
inline std::vector<std::exception_ptr> run_owning_ranks(int world_size, const RankBody& body) {
  at::set_num_threads(1);
  auto group = make_thread_group(world_size, {.timeout = kTestTimeout});
  std::vector<std::exception_ptr> failures(group.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < group.size(); ++rank) {
    threads.emplace_back([&, rank] {
      at::set_num_threads(1);
      try {
        body(static_cast<int>(rank), std::move(group[rank]));
      } catch (...) {
        failures[rank] = std::current_exception();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  return failures;
}

inline void rethrow_first(const std::vector<std::exception_ptr>& failures) {
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

/// The exception of each rank (null: none).
inline std::vector<std::exception_ptr> run_ranks_and_catch(int world_size,
                                                           const std::function<void(int, Collectives&)>& body) {
  return run_owning_ranks(world_size,
                          [&](int rank, std::unique_ptr<Collectives> collectives) { body(rank, *collectives); });
}

/// \throws the exception of the lowest rank that threw.
inline void run_ranks(int world_size, const std::function<void(int, Collectives&)>& body) {
  rethrow_first(run_ranks_and_catch(world_size, body));
}

/// Runs `body` with a session as every rank. `options_of` gives the options of a rank; world and connect are set here.
/// Without it: no banner.
inline void run_sessions(
    int world_size, const std::function<void(Session&)>& body,
    const std::function<SessionOptions(int)>& options_of = [](int) { return SessionOptions{.banner = false}; }) {
  rethrow_first(run_owning_ranks(world_size, [&](int rank, std::unique_ptr<Collectives> collectives) {
    SessionOptions options = options_of(rank);
    options.world.emplace();
    options.world->rank = options.world->local_rank = rank;
    options.world->world_size = options.world->local_world_size = world_size;
    options.connect = [&](const World&) { return std::move(collectives); };
    Session session(std::move(options));
    body(session);
  }));
}

}  // namespace lrun::test
