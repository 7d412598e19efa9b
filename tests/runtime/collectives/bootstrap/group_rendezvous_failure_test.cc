// A rank dies while the group is made: the others get an error at once that names it, whichever rank it is and however
// far all have come, also without a launcher that would end them.

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "runtime/collectives/bootstrap/group_rendezvous.h"
#include "runtime/collectives/bootstrap/process_identity.h"
#include "runtime/collectives/registry.h"
#include "runtime/collectives/shm/control_block.h"
#include "runtime/support/backend_ranks.h"

namespace lrun::detail::testing {
namespace {

using namespace std::chrono_literals;

std::string death_of(int rank, const RankProcess& process) {
  return "PeerLost: rank " + std::to_string(rank) + " (pid " + std::to_string(process.pid()) +
         ") ended while the group was made";
}

/// The line of a process in the first round of 'shm'.
std::string own_identity() { return std::to_string(kLayoutVersion) + " " + ProcessIdentity::of_this_process().text(); }

/// Runs `body` and stays until `all` have failed, so that no rank learns of a failure by another one's end.
std::function<void()> staying(SharedCounter& failed, std::uint32_t all, const std::function<void()>& body) {
  return [&failed, all, body] {
    const std::string error = error_of(body);
    failed.add();
    failed.wait_for(all);
    require(error.empty(), error);
  };
}

std::function<void()> makes_the_group(const GroupOptions& options) {
  return [options] { make_collectives("shm", options); };
}

/// Comes when rank 0 calls, and waits for its first answer.
std::function<void()> comes(const GroupOptions& options, SharedCounter& come) {
  return [options, &come] {
    GroupRendezvous rendezvous(options);
    come.add();
    rendezvous.exchange("", {});
  };
}

TEST(RendezvousFailure, OfARankThatHasSaidWhoItIsReachesAll) {
  const auto begin = std::chrono::steady_clock::now();
  SharedCounter met;
  SharedCounter failed;
  std::vector<RankProcess> waiting;
  for (const int rank : {0, 1, 3}) {
    waiting.emplace_back(staying(failed, 3, makes_the_group(group_of(rank, 4, "known"))));
  }
  RankProcess ending([&, options = group_of(2, 4, "known")] {
    GroupRendezvous rendezvous(options);
    rendezvous.exchange(own_identity(), {});
    met.add();
    ::pause();
  });
  met.wait_for(1);
  ending.kill();
  for (RankProcess& rank : waiting) EXPECT_EQ(rank.result(), "error: " + death_of(2, ending));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s) << "noticed by the deadline only";
}

TEST(RendezvousFailure, OfARankReachesThoseWhoWaitForAnother) {
  const auto begin = std::chrono::steady_clock::now();
  SharedCounter come;
  SharedCounter failed;
  std::vector<RankProcess> waiting;  // for rank 3, which never comes
  waiting.emplace_back(staying(failed, 2, makes_the_group(group_of(0, 4, "early"))));
  waiting.emplace_back(staying(failed, 2, comes(group_of(1, 4, "early"), come)));
  RankProcess ending(comes(group_of(2, 4, "early"), come));
  come.wait_for(2);
  ending.kill();
  for (RankProcess& rank : waiting) EXPECT_EQ(rank.result(), "error: " + death_of(2, ending));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s) << "noticed by the deadline only";
}

TEST(RendezvousFailure, OfRankZeroReachesThoseWhoWaitForAnother) {
  const auto begin = std::chrono::steady_clock::now();
  SharedCounter come;
  RankProcess ending(makes_the_group(group_of(0, 3, "headless")));  // waits for rank 2, which never comes
  RankProcess waiting(comes(group_of(1, 3, "headless"), come));
  come.wait_for(1);
  ending.kill();
  EXPECT_EQ(waiting.result(), death_of(0, ending));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s) << "noticed by the deadline only";
}

TEST(RendezvousFailure, AtTheDeadlineNamesWhoDidNotComeToAll) {
  SharedCounter come;
  std::vector<RankProcess> waiting;
  waiting.emplace_back(comes(group_of(1, 3, "incomplete", 60s), come));
  waiting.emplace_back([options = group_of(0, 3, "incomplete", 5s)] {
    StoreClient store(options.store, std::chrono::steady_clock::now() + 20s);
    require(store.get("lrun/incomplete/0/rank/1", std::chrono::steady_clock::now() + 20s).has_value(),
            "rank 1 is late");
    make_collectives("shm", options);
  });
  for (RankProcess& rank : waiting) {
    EXPECT_EQ(rank.result(),
              "CollectiveTimeout: the group of 3 ranks did not meet within 5000 ms: rank 2 did not come");
  }
}

TEST(RendezvousFailure, AtTheDeadlineOfARankNamesWhomRankZeroWaitsFor) {
  SharedCounter come;
  const RankProcess rank_zero(makes_the_group(group_of(0, 4, "patient", 60s)));
  const RankProcess witness(comes(group_of(2, 4, "patient", 60s), come));
  come.wait_for(1);                                                   // rank 0 calls the ranks that come
  RankProcess impatient(comes(group_of(1, 4, "patient", 5s), come));  // rank 0 has more time than it
  EXPECT_EQ(impatient.result(),
            "CollectiveTimeout: the group of 4 ranks did not meet within 5000 ms: rank 3 did not come");
}

/// A group whose rank 0 serves the store, as without a launcher that does.
class SelfServed {
 public:
  SelfServed(const std::string& name, int world_size) : name_(name), world_size_(world_size), pipe_(make_pipe()) {}

  RankProcess rank_zero() {
    return RankProcess([this, options = group_of(0, world_size_, name_)]() mutable {
      options.store = {"127.0.0.1", 0, true};
      const StoreClient store(options.store, std::chrono::steady_clock::now() + 10s);
      options.store = {"127.0.0.1", store.port(), false};  // this process serves it already
      for (int other = 1; other < world_size_; ++other) {
        require(::write(pipe_.write.get(), &options.store.port, sizeof options.store.port) > 0, "tell the port");
      }
      make_collectives("shm", options);
    });
  }

  RankProcess other_rank(int rank, SharedCounter& come) {
    return RankProcess([this, &come, options = group_of(rank, world_size_, name_)]() mutable {
      require(::read(pipe_.read.get(), &options.store.port, sizeof options.store.port) > 0, "hear the port");
      comes(options, come)();
    });
  }

 private:
  const std::string name_;
  const int world_size_;
  const Pipe pipe_;
};

TEST(RendezvousFailure, OfARankIsHeardBeforeRankZeroTakesTheStoreAlong) {
  SelfServed group("own-store", 4);
  SharedCounter come;
  std::vector<RankProcess> waiting;  // for rank 3, which never comes
  waiting.push_back(group.rank_zero());
  waiting.push_back(group.other_rank(1, come));
  RankProcess ending = group.other_rank(2, come);
  come.wait_for(2);
  ending.kill();
  for (RankProcess& rank : waiting) EXPECT_EQ(rank.result(), death_of(2, ending));
}

TEST(RendezvousFailure, NamesARankZeroThatTookTheStoreAlong) {
  SelfServed group("lost-store", 3);
  SharedCounter come;
  RankProcess ending = group.rank_zero();
  RankProcess waiting = group.other_rank(1, come);
  come.wait_for(1);
  ending.kill();
  EXPECT_EQ(waiting.result(), death_of(0, ending));
}

TEST(ProcessIdentity, IsReadAsItWasWritten) {
  const ProcessIdentity identity = ProcessIdentity::of_this_process();
  EXPECT_EQ(ProcessIdentity::parse(identity.text()), identity);
  EXPECT_EQ(ProcessIdentity::parse("a-host 12"), std::nullopt);
  EXPECT_EQ(identity.pid, ::getpid());
}

TEST(ProcessIdentity, IsSeenOnlyFromItsOwnHostAndPidNamespace) {
  const ProcessIdentity identity{"host", 7, 123};
  EXPECT_EQ(identity.pid_for({"host", 7, 456}), 123);
  EXPECT_EQ(identity.pid_for({"host", 8, 456}), 0);
  EXPECT_EQ(identity.pid_for({"other", 7, 456}), 0);
}

}  // namespace
}  // namespace lrun::detail::testing
