#include "runtime/stand_in/rank_threads.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <lrun/error.h>

#include <thread>
#include <typeinfo>
#include <utility>

#include "runtime/stand_in/operators.h"

namespace lrun::test::stand_in {

RankThreads::RankThreads(int world_size, std::chrono::milliseconds timeout)
    : world_size_(world_size), timeout_(timeout) {
  for (int rank = 0; rank < world_size; ++rank) {
    const auto tell_calls = [this, rank](const std::string& text) {
      const std::lock_guard lock(mutex_);
      calls_[rank] = text;
    };
    const auto hear_calls = [this](int other) -> detail::CallLog::Answer {
      const std::lock_guard lock(mutex_);
      const auto found = calls_.find(other);
      return {.text = found == calls_.end() ? std::nullopt : std::optional(found->second)};
    };
    logs_.push_back(std::make_unique<detail::CallLog>(rank, world_size, tell_calls, hear_calls));
  }
}

std::unique_ptr<Collectives> RankThreads::join(int rank) {
  const auto make = reinterpret_cast<detail::CudaEntryPoint>(::dlsym(RTLD_DEFAULT, detail::kCudaEntryPoint));
  detail::testing::require(make != nullptr, "liblrun_cuda.so is not loaded");
  detail::GroupOptions options;
  options.rank = rank;
  options.world_size = world_size_;
  options.timeout = timeout_;
  detail::CallLog& log = *logs_[static_cast<std::size_t>(rank)];
  const detail::CudaGroup group{options,
                                [this, rank](const std::string& text, const std::string&) { return share(rank, text); },
                                [this, rank] { return ended_peer(rank); },
                                [this](const std::string& failure) { tell(failure); },
                                [this] { return failure(); },
                                [&log](const detail::Call& call) { log.add(call); },
                                [&log] { return log.compare(); },
                                [&log, this](std::uint64_t sequence) { return log.explain(sequence, timeout_); }};
  return std::unique_ptr<Collectives>(make(&group));
}

void RankThreads::leave(int rank) {
  const std::lock_guard lock(mutex_);
  left_.insert(rank);
  changed_.notify_all();
}

std::string RankThreads::share(int rank, const std::string& text) {
  std::unique_lock lock(mutex_);
  if (rank == 0) text_ = text;
  came_.insert(rank);
  changed_.notify_all();
  const auto all_came = [this] { return came_.size() == static_cast<std::size_t>(world_size_); };
  changed_.wait_for(lock, timeout_, [&] { return all_came() || !left_.empty(); });
  if (all_came()) return text_;
  if (!left_.empty()) throw PeerLost("rank " + std::to_string(*left_.begin()) + " ended while the group was made");
  throw CollectiveTimeout("not all ranks came");
}

std::optional<std::string> RankThreads::ended_peer(int rank) {
  const std::lock_guard lock(mutex_);
  for (const int other : left_) {
    if (other != rank) return "rank " + std::to_string(other);
  }
  return std::nullopt;
}

std::optional<std::string> RankThreads::failure() {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void RankThreads::tell(const std::string& failure) {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = failure;
}

std::string text_of_error(const std::function<void()>& function) {
  std::string plain;
  const std::string other = detail::testing::error_of([&] {
    try {
      function();
    } catch (const Error& error) {
      if (typeid(error) != typeid(Error)) throw;
      plain = std::string("Error: ") + error.what();
    }
  });
  return plain.empty() ? other : plain;
}

std::vector<std::string> run_on_stand_in(RankThreads& ranks, const detail::testing::RankBody& body) {
  provide_operators();
  std::vector<std::string> errors(static_cast<std::size_t>(ranks.world_size()));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks.world_size(); ++rank) {
    threads.emplace_back([&, rank] {
      ::cudaSetDevice(rank);
      errors[static_cast<std::size_t>(rank)] = text_of_error([&] { body(*ranks.join(rank)); });
      ranks.leave(rank);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

std::vector<std::string> run_on_stand_in(int world_size, const detail::testing::RankBody& body,
                                         std::chrono::milliseconds timeout) {
  RankThreads ranks(world_size, timeout);
  return run_on_stand_in(ranks, body);
}

}  // namespace lrun::test::stand_in
