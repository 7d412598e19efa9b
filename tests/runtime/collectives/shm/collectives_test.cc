// Properties of 'shm' alone: its processes die, stop, start again and leave nothing behind.

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/collectives/bootstrap/group_rendezvous.h"
#include "runtime/collectives/refused_call.h"
#include "runtime/collectives/registry.h"
#include "runtime/collectives/shm/region.h"
#include "runtime/support/backend_ranks.h"

namespace lrun::detail::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// But for the folders of runs that other tests begin meanwhile.
std::vector<std::string> left_in_dev_shm() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    const std::string name = entry.path().filename();
    if (name.starts_with("lrun-") && !name.starts_with("lrun-memory-")) names.push_back(name);
  }
  return names;
}

/// Whether no group's file is in /dev/shm. Waits up to 30 s: the groups of other tests beside this one have a file for
/// a moment, and rank 0 unlinks that of ours only after the other ranks may already go on.
bool dev_shm_is_clean() {
  const auto deadline = std::chrono::steady_clock::now() + 30s;
  while (!left_in_dev_shm().empty()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(5ms);
  }
  return true;
}

TEST(Shm, NamesARankThatIsKilledInTheMiddleOfAnAllReduce) {
  for (bool bucket : {true, false}) {
    SharedCounter steps;
    GroupOptions options = group_of(0, 3, bucket ? "killed-bucket" : "killed-foreign");
    std::vector<RankProcess> ranks;
    for (options.rank = 0; options.rank < 3; ++options.rank) {
      ranks.emplace_back(options, [&](Collectives& group) {
        at::Tensor tensor = bucket ? group.allocate_bucket(1 << 20, at::kFloat) : at::ones({1 << 20}, at::kFloat);
        for (;;) {
          group.all_reduce(tensor, ReduceOp::kMax)->wait();
          if (group.rank() == 1) steps.add();
        }
      });
    }
    steps.wait_for_at_least(5);
    const auto killed = std::chrono::steady_clock::now();
    ranks[1].kill();
    const std::string name = "rank 1 (pid " + std::to_string(ranks[1].pid()) + ") ended during all_reduce #";
    EXPECT_THAT(ranks[0].result(), AllOf(StartsWith("PeerLost: "), HasSubstr(name)));
    EXPECT_THAT(ranks[2].result(), AllOf(StartsWith("PeerLost: "), HasSubstr(name)));
    EXPECT_LT(std::chrono::steady_clock::now() - killed, 10s) << "noticed by the deadline only";
    EXPECT_EQ(ranks[1].result(), "killed by signal 9");
  }
  EXPECT_TRUE(dev_shm_is_clean()) << ::testing::PrintToString(left_in_dev_shm());
}

TEST(Shm, NamesARankThatEndedBeforeItsFirstCall) {
  RankProcess gone(group_of(1, 2, "ended"), [](Collectives&) { ::_exit(3); });
  RankProcess waiting(group_of(0, 2, "ended"), [](Collectives& group) { group.barrier(); });
  EXPECT_EQ(waiting.result(), "PeerLost: rank 1 (pid " + std::to_string(gone.pid()) + ") ended during barrier #1");
  EXPECT_EQ(gone.result(), "exited 3");
}

TEST(Shm, NamesARankThatIsStopped) {
  RankProcess stopped(group_of(1, 2, "stopped", 2000ms), [](Collectives& group) {
    group.barrier();
    ::raise(SIGSTOP);
  });
  RankProcess waiting(group_of(0, 2, "stopped", 2000ms), [](Collectives& group) {
    group.barrier();
    group.all_reduce(at::ones({8}), ReduceOp::kSum)->wait();
  });
  EXPECT_EQ(waiting.result(), "CollectiveTimeout: all_reduce #2 did not finish within 2000 ms: rank 1 did not call it");
}

TEST(Shm, TellsTheOthersWhenARankLeavesItsWorkBehind) {
  SharedCounter left;
  RankProcess leaving(group_of(0, 2, "left-behind"),
                      [&](Collectives& group) { auto work = group.all_reduce(at::ones({8}), ReduceOp::kSum); });
  RankProcess staying(group_of(1, 2, "left-behind"), [&](Collectives& group) {
    left.wait_for(1);
    group.all_reduce(at::ones({8}), ReduceOp::kSum)->wait();
  });
  EXPECT_EQ(leaving.result(), "");
  left.add();
  EXPECT_EQ(staying.result(), "PeerLost: rank 0 left the group while operations were in flight");
}

TEST(Shm, MeetsAgainInAStoreThatRemembersTheLastAttempt) {
  for (int attempt = 0; attempt < 3; ++attempt) {
    GroupOptions options = group_of(0, 3, "attempts");
    std::vector<RankProcess> ranks;
    // In another order each time, so that every rank finds the entries of its predecessors.
    for (int i = 0; i < 3; ++i) {
      options.rank = (i + attempt) % 3;
      ranks.emplace_back(options, [](Collectives& group) {
        at::Tensor tensor = at::full({1}, group.rank(), at::kLong);
        group.all_reduce(tensor, ReduceOp::kSum)->wait();
        require_equal(tensor, at::full({1}, 3, at::kLong), "sum of the ranks");
      });
    }
    for (RankProcess& rank : ranks) EXPECT_EQ(rank.result(), "") << "attempt " << attempt;
  }
}

TEST(Shm, KeepsSeveralGroupsOfOneProgramApart) {
  GroupOptions options = group_of(0, 2, "several");
  std::vector<RankProcess> ranks;
  for (options.rank = 0; options.rank < 2; ++options.rank) {
    ranks.emplace_back(options, [options](Collectives& first) {
      const auto second = make_collectives("shm", options);
      at::Tensor a = first.allocate_bucket(100'000, at::kFloat);
      at::Tensor b = second->allocate_bucket(100'000, at::kFloat);
      a.fill_(1);
      b.fill_(2);
      const auto work_b = second->all_reduce(b, ReduceOp::kSum);
      const auto work_a = first.all_reduce(a, ReduceOp::kSum);
      work_a->wait();
      work_b->wait();
      require_equal(a, at::full({100'000}, 2, at::kFloat), "first group");
      require_equal(b, at::full({100'000}, 4, at::kFloat), "second group");
    });
  }
  for (RankProcess& rank : ranks) EXPECT_EQ(rank.result(), "");
}

std::int64_t shared_memory_kilobytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::int64_t kilobytes = 0;
    if (word == "RssShmem:" && status >> kilobytes) return kilobytes;
  }
  throw std::runtime_error("no RssShmem in /proc/self/status");
}

TEST(Shm, GivesTheMemoryOfABucketBack) {
  GroupOptions options = group_of(0, 2, "memory");
  std::vector<RankProcess> ranks;
  for (options.rank = 0; options.rank < 2; ++options.rank) {
    ranks.emplace_back(options, [](Collectives& group) {
      const std::int64_t before = shared_memory_kilobytes();
      for (int i = 0; i < 5; ++i) group.allocate_bucket(4 << 20, at::kFloat).fill_(1);
      const std::int64_t after = shared_memory_kilobytes();
      require(after < before + (8 << 10), "kB of shared memory: " + std::to_string(before) + ", then " +
                                              std::to_string(after) + " after five buckets of 16 MiB");
    });
  }
  for (RankProcess& rank : ranks) EXPECT_EQ(rank.result(), "");
}

TEST(Shm, LeavesBucketsUsableWhenTheGroupHasEnded) {
  GroupOptions options = group_of(0, 2, "outliving");
  std::vector<RankProcess> ranks;
  for (options.rank = 0; options.rank < 2; ++options.rank) {
    ranks.emplace_back([options] {
      auto group = make_collectives("shm", options);
      at::Tensor bucket = group->allocate_bucket(10'000, at::kFloat);
      bucket.fill_(options.rank);
      group->all_reduce(bucket, ReduceOp::kSum)->wait();
      group.reset();
      bucket.add_(1);
      require_equal(bucket, at::full({10'000}, 2, at::kFloat), "the bucket");
    });
  }
  for (RankProcess& rank : ranks) EXPECT_EQ(rank.result(), "");
}

TEST(ShmRegion, RefusesWhatIsSmallerThanARegionOrNoMemory) {
  SharedMemory memory = SharedMemory::create();
  memory.resize(ShmRegion::bytes(2) - 1);
  EXPECT_EQ(error_of([&] { ShmRegion::open(memory, 2, 0); }), "error: the shared memory belongs to another group");
  const Pipe pipe = make_pipe();
  const SharedMemory no_memory = SharedMemory::open_of(::getpid(), pipe.read.get());
  EXPECT_THAT(error_of([&] { ShmRegion::open(no_memory, 2, 0); }), HasSubstr("not a regular file"));
}

TEST(SharedMemory, HasRoomForItsPagesAlsoWhereTheKernelDoesNotKnowTheAdvice) {
  constexpr unsigned kPopulateWrite = 23;
  RankProcess old_kernel([] {
    refuse_call(SYS_madvise, EINVAL, CallArgument{2, kPopulateWrite});
    constexpr std::size_t kBytes = 1 << 20;
    SharedMemory memory = SharedMemory::create();
    memory.resize(3 * kBytes);
    const Mapping mapping = memory.map(kBytes, kBytes);
    memory.populate({mapping.data(), mapping.size()}, kBytes);
    struct stat status {};
    require(::fstat(memory.fd(), &status) == 0 && status.st_blocks * 512 == kBytes,
            "blocks of the file: " + std::to_string(status.st_blocks));
  });
  const std::string error = old_kernel.result();
  if (error == "error: no seccomp") GTEST_SKIP() << "this machine gives us no seccomp filter";
  EXPECT_EQ(error, "");
}

/// Runs `main` as the first process of a pid namespace of its own. \throws  when this machine does not let us.
void run_in_own_pid_namespace(const std::function<void()>& main) {
  if (::unshare(CLONE_NEWPID) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) {
    throw std::runtime_error("no pid namespace");
  }
  RankProcess inside(main);
  const std::string error = inside.result();
  require(error.empty(), error);
}

TEST(Shm, SharesANamedFileBetweenPidNamespacesAndUnlinksIt) {
  GroupOptions options = group_of(0, 2, "namespaces");
  std::vector<RankProcess> ranks;
  for (options.rank = 0; options.rank < 2; ++options.rank) {
    const auto work = [options] {
      const auto group = make_collectives("shm", options);
      require(dev_shm_is_clean(), "unlinked as soon as all have it");
      at::Tensor bucket = group->allocate_bucket(100'000, at::kFloat);
      bucket.fill_(1);
      group->all_reduce(bucket, ReduceOp::kSum)->wait();
      require_equal(bucket, at::full({100'000}, 2, at::kFloat), "the sum");
    };
    ranks.emplace_back([&] { options.rank == 0 ? work() : run_in_own_pid_namespace(work); });
  }
  const std::string second = ranks[1].result();
  if (second == "error: no pid namespace") GTEST_SKIP() << "this machine gives us no pid namespace";
  EXPECT_EQ(second, "");
  EXPECT_EQ(ranks[0].result(), "");
  EXPECT_TRUE(dev_shm_is_clean()) << ::testing::PrintToString(left_in_dev_shm());
}

TEST(Shm, NamesARankOfAnotherPidNamespaceThatEnds) {
  const auto begin = std::chrono::steady_clock::now();
  GroupOptions options = group_of(0, 2, "namespace-ends");
  RankProcess waiting(options, [](Collectives& group) { group.barrier(); });
  options.rank = 1;
  RankProcess ending([options] {
    run_in_own_pid_namespace([options] {
      const auto group = make_collectives("shm", options);
      ::_exit(3);
    });
  });
  const std::string end = ending.result();
  if (end == "error: no pid namespace") GTEST_SKIP() << "this machine gives us no pid namespace";
  EXPECT_EQ(end, "error: exited 3");
  EXPECT_EQ(waiting.result(), "PeerLost: rank 1 (pid 1) ended during barrier #1");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s) << "noticed by the deadline only";
}

TEST(Shm, NamesARankThatEndsWhereThereAreNoPidfds) {
  const auto begin = std::chrono::steady_clock::now();
  GroupOptions options = group_of(0, 3, "no-pidfds");
  std::vector<RankProcess> ranks;
  for (options.rank = 0; options.rank < 3; ++options.rank) {
    ranks.emplace_back([options] {
      refuse_call(SYS_pidfd_open, ENOSYS);
      const auto group = make_collectives("shm", options);
      group->barrier();
      RankProcess child([] {});  // whose end must not be taken for the rank's
      require(child.result().empty(), "the child ends");
      group->barrier();
      if (options.rank == 2) ::_exit(3);
      group->barrier();
    });
  }
  const std::string end = ranks[2].result();
  if (end == "error: no seccomp") GTEST_SKIP() << "this machine gives us no seccomp filter";
  EXPECT_EQ(end, "exited 3");
  const std::string lost = "PeerLost: rank 2 (pid " + std::to_string(ranks[2].pid()) + ") ended during barrier #3";
  EXPECT_EQ(ranks[0].result(), lost);
  EXPECT_EQ(ranks[1].result(), lost);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s) << "noticed by the deadline only";
}

TEST(Shm, UnlinksTheNamedFileWhenARankEndsBeforeAllHaveOpenedIt) {
  RankProcess creating([options = group_of(0, 2, "half-open")] { make_collectives("shm", options); });
  RankProcess ending([options = group_of(1, 2, "half-open")] {
    GroupRendezvous rendezvous(options);
    rendezvous.exchange(std::to_string(kLayoutVersion) + " " + rendezvous.process().text(), {});
    rendezvous.exchange({}, {});                            // hears of the memfd
    rendezvous.exchange("cannot be opened from here", {});  // so that a named file is made
  });
  EXPECT_EQ(ending.result(), "");
  EXPECT_THAT(creating.result(), StartsWith("PeerLost: rank 1 "));
  EXPECT_TRUE(dev_shm_is_clean()) << ::testing::PrintToString(left_in_dev_shm());
}

}  // namespace
}  // namespace lrun::detail::testing
