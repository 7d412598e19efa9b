// The view of a rank while another one is still writing down a failure.

#include "runtime/collectives/shm/barrier.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <thread>

#include "runtime/support/backend_ranks.h"

namespace lrun::detail::testing {
namespace {

using namespace std::chrono_literals;

/// Rank 0 of a group of two in this process; rank 1 is a child that has begun to report a failure.
class ReportedFailure {
 public:
  /// \param then  the child's next action.
  explicit ReportedFailure(const std::function<void(ControlBlock&)>& then)
      : memory_(SharedMemory::create()), region_(ShmRegion::create(memory_, 2, 7)), other_([this, &then] {
          region_.control().failure_state = ControlBlock::reported_by(1);
          begun_.add();
          then(region_.control());
        }) {
    begun_.wait_for(1);
  }

  [[nodiscard]] RankProcess& other() { return other_; }

  /// As rank 0 sees it.
  std::optional<Failure> failure() {
    const std::array pids{::getpid(), other_.pid()};
    ShmBarrier barrier(region_, 0, {pids.begin(), pids.end()}, PeerWatch(pids), 20s);
    return barrier.failure();
  }

 private:
  SharedMemory memory_;
  ShmRegion region_;
  SharedCounter begun_;
  RankProcess other_;
};

TEST(ShmBarrier, WaitsForAReportOfARankThatIsOffItsCore) {
  ReportedFailure reported([](ControlBlock& control) {
    std::this_thread::sleep_for(400ms);  // no rank waits for this: the time for which it is off its core
    control.failure_kind = static_cast<std::uint32_t>(Failure::Kind::kMismatch);
    std::strcpy(control.failure_text.data(), "what it says");
    control.failure_state = ControlBlock::kFailed;
  });
  const auto failure = reported.failure();
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->text, "what it says");
  EXPECT_EQ(failure->kind, Failure::Kind::kMismatch);
}

TEST(ShmBarrier, NamesARankThatEndedWhileItReported) {
  ReportedFailure reported([](ControlBlock&) {});
  const std::string name = "rank 1 (pid " + std::to_string(reported.other().pid()) + ")";
  ASSERT_EQ(reported.other().result(), "");
  const auto begin = std::chrono::steady_clock::now();
  const auto failure = reported.failure();
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->text, name + " ended while it reported the failure of the group");
  EXPECT_EQ(failure->kind, Failure::Kind::kPeerLost);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s) << "noticed by the deadline only";
}

}  // namespace
}  // namespace lrun::detail::testing
