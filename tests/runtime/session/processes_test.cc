// Training programs that are processes, as a launcher starts them, on shared memory.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "base/environment.h"
#include "base/fd.h"
#include "runtime/collectives/bootstrap/store_client.h"
#include "support/temporary_folder.h"

namespace lrun::detail {
namespace {

using Variables = std::map<std::string, std::string>;

/// A running training_worker. Killed and reaped when it is not waited for.
class Worker {
 public:
  Worker(const std::string& mode, const Variables& contract) {
    auto environment = Environment::of_this_process();
    environment.set("OMP_NUM_THREADS", "1");
    for (const auto& [name, value] : contract) environment.set(name, value);
    std::vector<std::string> entries;
    for (const auto& [name, value] : environment.variables()) entries.push_back(name + "=" + value);
    std::vector<char*> envp;
    for (auto& entry : entries) envp.push_back(entry.data());
    envp.push_back(nullptr);

    Pipe pipe = make_pipe();
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, pipe.write.get(), STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, pipe.write.get(), STDERR_FILENO);
    std::string program = LRUN_TEST_WORKER;
    std::string argument = mode;
    char* arguments[] = {program.data(), argument.data(), nullptr};
    const int error = ::posix_spawn(&pid_, program.c_str(), &actions, nullptr, arguments, envp.data());
    ::posix_spawn_file_actions_destroy(&actions);
    if (error != 0) throw std::system_error(error, std::generic_category(), program);
    output_ = std::move(pipe.read);
  }
  Worker(Worker&& other) noexcept : pid_(std::exchange(other.pid_, 0)), output_(std::move(other.output_)) {}
  Worker& operator=(Worker&&) = delete;
  ~Worker() {
    if (pid_ == 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  struct Ending {
    int status = 0;
    std::string output;
  };
  Ending wait() {
    Ending ending;
    char bytes[4096];
    for (ssize_t size = 0; (size = ::read(output_.get(), bytes, sizeof bytes)) > 0;) {
      ending.output.append(bytes, static_cast<std::size_t>(size));
    }
    ::waitpid(std::exchange(pid_, 0), &ending.status, 0);
    return ending;
  }

 private:
  pid_t pid_ = 0;
  Fd output_;
};

std::vector<Worker::Ending> run_world(const std::string& mode, int world_size, const Variables& store) {
  std::vector<Worker> workers;
  for (int rank = 0; rank < world_size; ++rank) {
    Variables contract = store;  // goes first
    contract.insert({{"RANK", std::to_string(rank)}, {"LOCAL_RANK", std::to_string(rank)}});
    contract.insert({{"WORLD_SIZE", std::to_string(world_size)}, {"LOCAL_WORLD_SIZE", std::to_string(world_size)}});
    workers.emplace_back(mode, contract);
  }
  std::vector<Worker::Ending> endings;
  for (auto& worker : workers) endings.push_back(worker.wait());
  return endings;
}

/// A store that this process serves, as a launcher does; each call names another run.
Variables launchers_store() {
  static const StoreClient store({"127.0.0.1", 0, true}, std::chrono::steady_clock::now() + std::chrono::seconds(10));
  static int runs = 0;
  return {{"MASTER_ADDR", "127.0.0.1"},
          {"MASTER_PORT", std::to_string(store.port())},
          {"TORCHELASTIC_USE_AGENT_STORE", "True"},
          {"TORCHELASTIC_RUN_ID", "run" + std::to_string(runs++)}};
}

int free_port() {
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  void* raw = &address;
  if (::bind(socket.get(), static_cast<sockaddr*>(raw), size) != 0) return 0;
  if (::getsockname(socket.get(), static_cast<sockaddr*>(raw), &size) != 0) return 0;
  return ntohs(address.sin_port);
}

using Parameters = std::map<std::string, std::vector<double>>;

/// As MPICH's mpirun starts tasks: no address, no port, no name of the job, but the same process behind PMI_FD.
std::vector<Worker::Ending> run_below_mpich(int world_size) {
  std::vector<Fd> ends;  // inherited
  std::vector<Worker> workers;
  for (int rank = 0; rank < world_size; ++rank) {
    int pair[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    ends.emplace_back(pair[0]);
    ends.emplace_back(pair[1]);
    workers.emplace_back("train", Variables{{"PMI_RANK", std::to_string(rank)},
                                            {"PMI_SIZE", std::to_string(world_size)},
                                            {"MPI_LOCALRANKID", std::to_string(rank)},
                                            {"MPI_LOCALNRANKS", std::to_string(world_size)},
                                            {"PMI_FD", std::to_string(pair[1])}});
  }
  std::vector<Worker::Ending> endings;
  for (auto& worker : workers) endings.push_back(worker.wait());
  return endings;
}

Parameters parse(const std::string& output) {
  Parameters parameters;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("lrun:") || line.starts_with("[W")) continue;  // the banner, and LibTorch's warnings
    std::istringstream words(line);
    std::string name;
    words >> name;
    for (std::string word; words >> word;) parameters[name].push_back(std::strtod(word.c_str(), nullptr));
  }
  return parameters;
}

void expect_equal(const Parameters& actual, const Parameters& expected) {
  ASSERT_EQ(expected.size(), 4U);
  ASSERT_EQ(actual.size(), expected.size());
  for (const auto& [name, elements] : expected) {
    const auto& others = actual.at(name);
    ASSERT_EQ(others.size(), elements.size()) << name;
    double largest = 0;
    for (const double element : elements) largest = std::max(largest, std::abs(element));
    for (std::size_t index = 0; index < elements.size(); ++index) {
      ASSERT_NEAR(others[index], elements[index], 1e-6 * largest) << name << " " << index;
    }
  }
}

Parameters alone() {
  const auto ending = Worker("train", {}).wait();
  EXPECT_EQ(ending.status, 0) << ending.output;
  return parse(ending.output);
}

class ProcessWorld : public testing::TestWithParam<int> {};

TEST_P(ProcessWorld, TrainLikeOneOnTheWholeBatch) {
  const auto endings = run_world("train", GetParam(), launchers_store());
  for (const auto& ending : endings) ASSERT_EQ(ending.status, 0) << ending.output;
  expect_equal(parse(endings[0].output), alone());
}

INSTANTIATE_TEST_SUITE_P(Worlds, ProcessWorld, testing::Values(2, 3, 4),
                         [](const auto& world) { return std::to_string(world.param); });

TEST(Process, OfRankZeroServesTheStoreWithoutALauncher) {
  const auto endings =
      run_world("train", 2, {{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", std::to_string(free_port())}});
  for (const auto& ending : endings) ASSERT_EQ(ending.status, 0) << ending.output;
  EXPECT_NE(endings[0].output.find("lrun: ddp over shm, 2 ranks on 1 node, device cpu, seed 0\n"), std::string::npos)
      << endings[0].output;
  EXPECT_EQ(parse(endings[0].output).size(), 4U);
}

TEST(Process, OfMpichsMpirunFindsTheOthersWithoutAWordMore) {
  const auto endings = run_below_mpich(2);
  for (const auto& ending : endings) ASSERT_EQ(ending.status, 0) << ending.output;
  expect_equal(parse(endings[0].output), alone());
}

/// The same where each rank is a node with two devices.
void make_nodes_of(Variables& contract) {
  contract["LRUN_STRATEGY"] = "ddp2";
  contract["LRUN_DEVICES"] = "cpu,cpu";
  contract["LOCAL_RANK"] = "0";
  contract["LOCAL_WORLD_SIZE"] = "1";
}

using StrategyAndPhase = std::tuple<const char*, const char*>;
class KilledProcess : public testing::TestWithParam<StrategyAndPhase> {};

TEST_P(KilledProcess, IsNamedByTheOthers) {
  const test::TemporaryFolder folder;
  const auto& [strategy, phase] = GetParam();
  auto variables = launchers_store();
  variables["TEST_CHECKPOINTS"] = folder.path().string();
  if (strategy == std::string("ddp2")) make_nodes_of(variables);
  const auto endings = run_world(std::string("die-") + phase, 3, variables);
  EXPECT_TRUE(WIFSIGNALED(endings[1].status));
  for (const std::size_t rank : {std::size_t{0}, std::size_t{2}}) {
    EXPECT_TRUE(WIFEXITED(endings[rank].status) && WEXITSTATUS(endings[rank].status) == 7) << endings[rank].output;
    // While ranks meet they watch rank 0 alone: it names the missing rank, and another rank's deadline may come before.
    if (rank != 0 && phase == std::string("connect")) continue;
    const std::string& text = endings[rank].output;
    EXPECT_TRUE(text.find("rank 1") != text.npos || text.find("ranks 1") != text.npos) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Phases, KilledProcess,
                         testing::Combine(testing::Values("ddp", "ddp2"),
                                          testing::Values("connect", "broadcast", "forward", "reduce", "checkpoint")),
                         [](const auto& cell) {
                           return std::string(std::get<0>(cell.param)) + "_" + std::get<1>(cell.param);
                         });

/// The lines of a worker that begin with `word`.
std::string line_of(const std::string& output, const std::string& word) {
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(word + " ")) return line;
  }
  return "no line '" + word + "' in " + output;
}

TEST(Processes, GiveTheSameBitsInEveryRun) {
  const auto once = run_world("seeds", 2, launchers_store());
  const auto again = run_world("seeds", 2, launchers_store());
  for (const std::size_t rank : {std::size_t{0}, std::size_t{1}}) {
    ASSERT_EQ(once[rank].status, 0) << once[rank].output;
    EXPECT_EQ(parse(once[rank].output), parse(again[rank].output)) << "rank " << rank;
  }
  EXPECT_EQ(parse(once[0].output).size(), 6U) << once[0].output;
  EXPECT_EQ(line_of(once[0].output, "initial"), line_of(once[1].output, "initial")) << "the initial weights";
  EXPECT_NE(line_of(once[0].output, "noise"), line_of(once[1].output, "noise")) << "the ranks' own streams";
}

TEST(Process, WithAnotherModelIsNamedByAll) {
  for (const auto& ending : run_world("mismatch", 2, launchers_store())) {
    EXPECT_TRUE(WIFEXITED(ending.status) && WEXITSTATUS(ending.status) == 7) << ending.output;
    EXPECT_NE(ending.output.find("the model differs between ranks: parameter 'first.weight' is Double [16, 8], trained "
                                 "on rank 0, and parameter 'first.weight' is Double [17, 8], trained on rank 1\n"),
              std::string::npos)
        << ending.output;
  }
}

TEST(Process, WithoutAnAddressIsToldWhatIsMissing) {
  const auto ending = Worker("train", {{"RANK", "0"}, {"WORLD_SIZE", "2"}}).wait();
  EXPECT_TRUE(WIFEXITED(ending.status) && WEXITSTATUS(ending.status) == 7);
  EXPECT_EQ(ending.output, "environment variable 'MASTER_ADDR' is missing\n");
}

}  // namespace
}  // namespace lrun::detail
