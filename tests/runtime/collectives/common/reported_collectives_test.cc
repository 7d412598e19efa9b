#include "runtime/collectives/common/reported_collectives.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "runtime/collectives/common/group_member.h"

namespace lrun::detail::testing {
namespace {

/// A rank's end of a group of two, in whose operations the launcher's memory is read. 'refuse' makes them throw.
struct Seen {
  ProgressBoard board{1};
  std::vector<std::string> operations;
  bool refuse = false;

  void look() {
    operations.push_back(board.of(0).call.operation());
    if (refuse) throw std::invalid_argument("refused");
  }
};

class WaitSeen final : public CollectiveWork {
 public:
  explicit WaitSeen(Seen& seen) : seen_(seen) {}
  [[nodiscard]] bool done() const override { return false; }
  void wait() override { seen_.look(); }

 private:
  Seen& seen_;
};

class GroupSeen final : public GroupMember {
 public:
  explicit GroupSeen(Seen& seen) : GroupMember("seen", 0, 2, std::chrono::seconds(1)), seen_(seen) {}

  at::Tensor allocate_bucket(std::int64_t, at::ScalarType) override {
    seen_.look();
    return {};
  }
  std::unique_ptr<CollectiveWork> all_reduce(at::Tensor, ReduceOp, std::uint64_t) override {
    seen_.look();
    return std::make_unique<WaitSeen>(seen_);
  }
  void broadcast(at::Tensor, int) override { seen_.look(); }
  void all_gather(at::Tensor, const at::Tensor&) override { seen_.look(); }
  void reduce_scatter(at::Tensor, const at::Tensor&, ReduceOp) override { seen_.look(); }
  void barrier() override { seen_.look(); }
  void abort(const std::string&) override { seen_.look(); }
  std::unique_ptr<Collectives> subgroup(const std::vector<int>& ranks) override {
    seen_.look();
    return ranks.empty() ? nullptr : std::make_unique<GroupSeen>(seen_);
  }

 private:
  Seen& seen_;
};

std::unique_ptr<Collectives> reported_group(Seen& seen) {
  return report_calls(std::make_unique<GroupSeen>(seen),
                      std::make_shared<const CallReporter>(ProgressBoard::variable(seen.board.fd(), 0).c_str()));
}

using Operations = std::vector<std::string>;

TEST(ReportedCollectives, SayInWhichOperationTheRankWaits) {
  Seen seen;
  const auto group = reported_group(seen);
  const at::Tensor one = at::ones({1});
  const at::Tensor two = at::empty({2, 1});
  static_cast<void>(group->allocate_bucket(1, at::kFloat));
  const auto work = group->all_reduce(one, ReduceOp::kSum);
  EXPECT_FALSE(seen.board.of(0).call) << "it was posted, and nobody waits for it";
  work->wait();
  group->broadcast(one, 0);
  group->all_gather(two, one);
  group->reduce_scatter(one, two, ReduceOp::kSum);
  group->all_to_all(at::empty({2, 1}), two);
  group->barrier();
  group->abort("as it likes");
  EXPECT_EQ(seen.operations, (Operations{"allocate_bucket", "", "all_reduce", "broadcast", "all_gather",
                                         "reduce_scatter", "all_to_all", "barrier", ""}));
  EXPECT_FALSE(seen.board.of(0).call);
}

TEST(ReportedCollectives, WaitNoLongerWhereAnOperationThrows) {
  Seen seen;
  const auto group = reported_group(seen);
  seen.refuse = true;
  EXPECT_THROW(group->barrier(), std::invalid_argument);
  EXPECT_FALSE(seen.board.of(0).call);
}

TEST(ReportedCollectives, SayTheSameOfTheirSubgroupsWhichMayOutliveThem) {
  Seen seen;
  auto group = reported_group(seen);
  EXPECT_EQ(group->subgroup({}), nullptr);
  const auto part = group->subgroup({0});
  group.reset();
  part->barrier();
  EXPECT_EQ(seen.operations, (Operations{"all_gather", "all_gather", "barrier"}));
}

}  // namespace
}  // namespace lrun::detail::testing
