#include "runtime/support/backend_ranks.h"

#include <ATen/ops/equal.h>
#include <lrun/error.h>
#include <lrun/thread_group.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <memory>
#include <new>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>

#include "runtime/collectives/registry.h"
#include "runtime/collectives/single.h"

namespace lrun::detail::testing {
namespace {

std::vector<std::string> run_threads(int world_size, const RankBody& body, std::chrono::milliseconds timeout) {
  auto group = make_thread_group(world_size, {timeout});
  std::vector<std::string> errors(group.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < group.size(); ++rank) {
    threads.emplace_back([&, rank] {
      const std::unique_ptr<Collectives> mine = std::move(group[rank]);
      errors[rank] = error_of([&] { body(*mine); });
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

std::vector<std::string> run_processes(const std::string& backend, int world_size, const RankBody& body,
                                       std::chrono::milliseconds timeout) {
  static int groups = 0;
  const std::string name = "test" + std::to_string(groups++);
  std::vector<RankProcess> processes;
  for (int rank = 0; rank < world_size; ++rank) {
    GroupOptions options = group_of(rank, world_size, name, timeout);
    if (backend == "shm+gloo") options.host = rank + 1 < world_size ? "most" : "last";
    processes.emplace_back(options, body, backend);
  }
  std::vector<std::string> errors;
  for (RankProcess& process : processes) errors.push_back(process.result());
  return errors;
}

}  // namespace

std::string name_of_group(const ::testing::TestParamInfo<std::tuple<std::string, int>>& info) {
  const auto& [backend, world_size] = info.param;
  return (backend == "shm+gloo" ? "ShmAndGloo" : backend) + std::to_string(world_size);
}

StoreAddress test_store() {
  // In a process of its own: forking a process that serves would copy its connections into the ranks.
  static Pipe pipe = make_pipe();
  static const RankProcess server([] {
    const StoreClient store({"127.0.0.1", 0, true}, std::chrono::steady_clock::now() + std::chrono::seconds(10));
    const std::uint16_t port = store.port();
    require(::write(pipe.write.get(), &port, sizeof port) == sizeof port, "write the port");
    for (;;) ::pause();
  });
  static const std::uint16_t port = [] {
    std::uint16_t number = 0;
    require(::read(pipe.read.get(), &number, sizeof number) == sizeof number, "read the port");
    return number;
  }();
  return {"127.0.0.1", port, false};
}

GroupOptions group_of(int rank, int world_size, const std::string& name, std::chrono::milliseconds timeout) {
  GroupOptions options;
  options.rank = rank;
  options.world_size = world_size;
  options.store = test_store();
  options.name = name;
  options.timeout = timeout;
  return options;
}

RankProcess::RankProcess(const GroupOptions& options, const RankBody& body, const std::string& backend)
    : RankProcess([&] { body(*make_collectives(backend, options)); }) {}

RankProcess::RankProcess(const std::function<void()>& main) {
  Pipe pipe = make_pipe();
  pid_ = ::fork();
  require(pid_ >= 0, "fork");
  if (pid_ > 0) {
    output_ = std::move(pipe.read);
    return;
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  pipe.read.reset();
  const std::string error = error_of(main);
  ::_exit(::write(pipe.write.get(), error.data(), error.size()) < 0 ? 2 : 0);
}

RankProcess::~RankProcess() {
  if (!output_) return;  // moved from, or reaped
  kill();
  ::waitpid(pid_, nullptr, 0);
}

void RankProcess::kill() const { ::kill(pid_, SIGKILL); }

std::string RankProcess::result() {
  std::string text;
  char buffer[4096];
  for (ssize_t size = 0; (size = ::read(output_.get(), buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<std::size_t>(size));
  }
  int status = 0;
  ::waitpid(pid_, &status, 0);
  output_.reset();
  if (WIFSIGNALED(status)) return "killed by signal " + std::to_string(WTERMSIG(status));
  if (WEXITSTATUS(status) != 0) return "exited " + std::to_string(WEXITSTATUS(status));
  return text;
}

std::string error_of(const std::function<void()>& function) {
  try {
    function();
  } catch (const PeerLost& error) {
    return std::string("PeerLost: ") + error.what();
  } catch (const CollectiveTimeout& error) {
    return std::string("CollectiveTimeout: ") + error.what();
  } catch (const CollectiveMismatch& error) {
    return std::string("CollectiveMismatch: ") + error.what();
  } catch (const Unsupported& error) {
    return std::string("Unsupported: ") + error.what();
  } catch (const std::invalid_argument& error) {
    return std::string("invalid_argument: ") + error.what();
  } catch (const std::exception& error) {
    return std::string("error: ") + error.what();
  }
  return {};
}

std::vector<std::string> run_ranks(const std::string& backend, int world_size, const RankBody& body,
                                   std::chrono::milliseconds timeout) {
  if (backend == "threads") return run_threads(world_size, body, timeout);
  if (backend == "single") {
    const auto single = make_single(timeout);
    return {error_of([&] { body(*single); })};
  }
  return run_processes(backend, world_size, body, timeout);
}

void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

void require_equal(const at::Tensor& actual, const at::Tensor& expected, const std::string& what) {
  if (at::equal(actual, expected)) return;
  std::ostringstream text;
  text << what << ": is\n" << actual << "\ninstead of\n" << expected;
  throw std::runtime_error(text.str());
}

SharedCounter::SharedCounter() {
  void* page = ::mmap(nullptr, sizeof *value_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  require(page != MAP_FAILED, "mmap of a shared counter");
  value_ = new (page) std::atomic<std::uint32_t>(0);
}

SharedCounter::~SharedCounter() { ::munmap(value_, sizeof *value_); }

void SharedCounter::add() { value_->fetch_add(1); }

void SharedCounter::wait_for(std::uint32_t count) const {
  wait_until([&](std::uint32_t value) { return value == count; });
}

void SharedCounter::wait_for_at_least(std::uint32_t count) const {
  wait_until([&](std::uint32_t value) { return value >= count; });
}

void SharedCounter::wait_until(const std::function<bool(std::uint32_t)>& holds) const {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!holds(value_->load())) {
    require(std::chrono::steady_clock::now() < deadline, "a shared counter stays at " + std::to_string(value_->load()));
    std::this_thread::yield();
  }
}

}  // namespace lrun::detail::testing
