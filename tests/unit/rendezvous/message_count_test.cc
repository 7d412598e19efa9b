// What a job of many nodes says: a fixed number of messages a node, in a meeting and in every round.
#include <gtest/gtest.h>

#include <string>

#include "told_meeting.h"

namespace lrun {
namespace {

using Kind = LauncherMessage::Kind;
using test::ToldMeeting;

struct Count {
  int messages = 0;       ///< to the holder and from it
  std::size_t bytes = 0;  ///< of those from it
};

/// A job whose nodes come one after the other, and all of which begin, report and are ready for another round.
class ManyNodes {
 public:
  explicit ManyNodes(int nodes) : nodes_(nodes), meeting_(nodes, nodes) {}

  Count meet() {
    for (int i = 1; i <= nodes_; ++i) {
      const std::string address = "10." + std::to_string(i >> 16) + "." + std::to_string(i >> 8 & 255) + ".";
      meeting_.join(static_cast<LauncherId>(i), test::node_at(address + std::to_string(i & 255)));
    }
    return counted(nodes_, Kind::kBegin);
  }

  Count end_a_round(int round) {
    for (int i = 1; i <= nodes_; ++i) meeting_.say(static_cast<LauncherId>(i), Kind::kReport, round, "{}");
    const Count over = counted(nodes_, Kind::kOver);
    for (int i = 1; i <= nodes_; ++i) meeting_.ready(static_cast<LauncherId>(i), round + 1, 0);
    const Count begun = counted(nodes_, Kind::kBegin);
    return {over.messages + begun.messages, over.bytes + begun.bytes};
  }

 private:
  /// `received` by the holder, and what it said since: one message of this kind to everybody.
  Count counted(int received, Kind kind) {
    const auto sends = meeting_.coordinator.take_sends();
    Count count{received + static_cast<int>(sends.size())};
    for (const Coordinator::Send& send : sends) {
      EXPECT_EQ(send.message.kind, kind);
      std::string bytes;
      if (&send == &sends.front()) append_message(bytes, send.message);  // the others' are as long
      count.bytes += bytes.size() * sends.size();
    }
    return count;
  }

  int nodes_;
  ToldMeeting meeting_;
};

TEST(MessageCount, IsTwoToMeetAndFourARoundForEachNodeHoweverManyThereAre) {
  for (const int nodes : {2, 50, 700}) {
    ManyNodes job(nodes);
    EXPECT_EQ(job.meet().messages, 2 * nodes);
    EXPECT_EQ(job.end_a_round(0).messages, 4 * nodes);
    EXPECT_EQ(job.end_a_round(1).messages, 4 * nodes);
  }
}

/// Everybody is told of everybody: what bounds how many nodes may meet.
TEST(MessageCount, BytesOfAMeetingAreAtMost200ForEachPairOfNodes) {
  for (const int nodes : {50, 700}) {
    const auto pairs = static_cast<std::size_t>(nodes) * static_cast<std::size_t>(nodes);
    EXPECT_LE(ManyNodes(nodes).meet().bytes, 200 * pairs);
  }
}

}  // namespace
}  // namespace lrun
