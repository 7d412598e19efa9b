// How ranks find each other, and the errors when they do not.

#include "runtime/collectives/bootstrap/group_rendezvous.h"

#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lrun/error.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string>
#include <vector>

#include "runtime/collectives/bootstrap/peer_watch.h"
#include "runtime/collectives/registry.h"
#include "runtime/collectives/shm/control_block.h"
#include "runtime/support/backend_ranks.h"

namespace lrun::detail::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(GroupRendezvous, GivesEverybodyTheAnswerOfRankZero) {
  std::vector<RankProcess> ranks;
  for (int rank = 0; rank < 4; ++rank) {
    ranks.emplace_back([rank, options = group_of(rank, 4, "answers")] {
      GroupRendezvous rendezvous(options);
      for (int round = 0; round < 3; ++round) {
        const std::string answer =
            rendezvous.exchange(std::to_string(10 * round + rank), [](const std::vector<std::string>& lines) {
              std::string all;
              for (const std::string& line : lines) all += line + " ";
              return all;
            });
        std::string expected;
        for (int other = 0; other < 4; ++other) expected += std::to_string(10 * round + other) + " ";
        require(answer == expected, answer);
      }
    });
  }
  for (RankProcess& rank : ranks) EXPECT_EQ(rank.result(), "");
}

TEST(GroupRendezvous, NamesTheRanksThatDoNotCome) {
  EXPECT_EQ(error_of([] { GroupRendezvous(group_of(0, 3, "nobody", 200ms)); }),
            "CollectiveTimeout: the group of 3 ranks did not meet within 200 ms: ranks 1 and 2 did not come");
  EXPECT_EQ(error_of([] { GroupRendezvous(group_of(1, 2, "no-zero", 200ms)); }),
            "CollectiveTimeout: the group of 2 ranks did not meet within 200 ms: rank 0 did not come");
}

TEST(GroupRendezvous, MeetsAfterAnAttemptThatOneRankMadeAlone) {
  SharedCounter failed;
  RankProcess early([&, early = group_of(0, 2, "again", 200ms), again = group_of(0, 2, "again")] {
    require(error_of([&] { make_collectives("shm", early); }).starts_with("CollectiveTimeout"), "met nobody");
    failed.add();
    make_collectives("shm", again)->barrier();
  });
  RankProcess late([&, options = group_of(1, 2, "again")] {
    failed.wait_for(1);
    make_collectives("shm", options)->barrier();
  });
  EXPECT_EQ(early.result(), "");
  EXPECT_EQ(late.result(), "");
}

TEST(GroupRendezvous, NamesTheStoreThatItCannotReach) {
  GroupOptions options = group_of(1, 2, "no-store", 500ms);
  options.store.port = 1;  // nobody listens on it
  EXPECT_THAT(error_of([&] { GroupRendezvous rendezvous(options); }),
              StartsWith("CollectiveTimeout: cannot reach the store at 127.0.0.1:1: "));
}

TEST(PeerWatch, SeesAPeerThatEndedBeforeItWasWatched) {
  RankProcess gone([] {});
  RankProcess alive([] { ::pause(); });
  ASSERT_EQ(gone.result(), "");  // reaped: its pid names nobody
  const PeerWatch watch(std::array{::getpid(), gone.pid(), alive.pid(), 0});
  EXPECT_EQ(watch.ended(std::array{0, 1, 2, 3}), std::vector{1});
}

TEST(GroupRendezvous, RefusesRanksOfSeveralHostsOnAllRanks) {
  RankProcess here(group_of(0, 2, "hosts"), [](Collectives&) {});
  RankProcess elsewhere([options = group_of(1, 2, "hosts")] {
    GroupRendezvous rendezvous(options);
    const std::string all = rendezvous.exchange(std::to_string(kLayoutVersion) + " another-boot-id 1 1", {});
    require(all.find("another-boot-id") != std::string::npos, all);
  });
  EXPECT_THAT(here.result(), AllOf(StartsWith("Unsupported: the ranks are on 2 hosts"), HasSubstr("'gloo'")));
  EXPECT_EQ(elsewhere.result(), "");
}

TEST(Registry, ChoosesForTheWorld) {
  EXPECT_EQ(make_collectives("", group_of(0, 1, "one"))->name(), "single");
  EXPECT_EQ(make_collectives("auto", group_of(0, 1, "one"))->name(), "single");
  EXPECT_EQ(make_collectives("shm", group_of(0, 1, "one"))->name(), "shm");
  std::vector<RankProcess> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([options = group_of(rank, 2, "auto")] {
      const auto group = make_collectives("auto", options);
      require(group->name() == "shm", group->name());
    });
  }
  for (RankProcess& rank : ranks) EXPECT_EQ(rank.result(), "");
}

TEST(Registry, SaysWhatIsInPlaceOfABackendThatIsNotThere) {
  const auto refusal = [](const std::string& name, int world_size) {
    return error_of([&] { make_collectives(name, group_of(0, world_size, "refused")); });
  };
  EXPECT_THAT(refusal("nccl", 2),
              AllOf(StartsWith("Unsupported: backend 'nccl' needs liblrun_cuda.so"), HasSubstr("'shm'")));
  EXPECT_THAT(refusal("threads", 2), AllOf(StartsWith("Unsupported: "), HasSubstr("make_thread_group")));
  EXPECT_THAT(refusal("single", 2),
              AllOf(StartsWith("Unsupported: "), HasSubstr("world of one, this one has 2 ranks")));
  EXPECT_EQ(refusal("shmm", 2), "Unsupported: unknown backend 'shmm': did you mean 'shm'?");
  EXPECT_THAT(refusal("carrier-pigeon", 2),
              HasSubstr("it is one of auto, single, shm, gloo, shm+gloo, nccl and threads"));
  EXPECT_THAT(error_of([] { make_collectives("shm", group_of(2, 2, "refused")); }), StartsWith("invalid_argument"));
}

}  // namespace
}  // namespace lrun::detail::testing
