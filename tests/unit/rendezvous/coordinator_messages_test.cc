// The messages of a job of many nodes: a fixed number a node, to meet and in every round.
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <vector>

#include "coordinator_harness.h"
#include "verdict/job_report.h"

namespace lrun::launcher {
namespace {

using Kind = LauncherMessage::Kind;
using test::CoordinatorHarness;

struct Count {
  int messages = 0;       ///< to the leader and from it
  std::size_t bytes = 0;  ///< of those from it
};

/// A job whose nodes come one after the other, and all of which begin, report and are ready for another round.
class ManyNodes {
 public:
  explicit ManyNodes(int nodes) : nodes_(nodes), harness_(nodes, nodes, merge_reports) {
    std::vector<FailureRecord> records(8);
    for (FailureRecord& record : records) record.stop_signal = SIGTERM;
    records.front().stop_signal = 0;
    records.front().value = 3;
    records.front().evidence = {"ValueError: no such batch"};
    report_ = to_json(report_of("node", 1, {RunEnd::Kind::kWorkerFailed}, 1, records, {}));
  }

  Count meet() {
    for (int i = 1; i <= nodes_; ++i) {
      const std::string address = "10." + std::to_string(i >> 16) + "." + std::to_string(i >> 8 & 255) + ".";
      harness_.join(static_cast<ConnectionId>(i), test::node_at(address + std::to_string(i & 255)));
    }
    return counted(nodes_, Kind::kBegin);
  }

  Count end_a_round(int round) {
    for (int i = 1; i <= nodes_; ++i) harness_.say(static_cast<ConnectionId>(i), Kind::kReport, round, report_);
    const Count over = counted(nodes_, Kind::kOver);
    for (int i = 1; i <= nodes_; ++i) harness_.ready(static_cast<ConnectionId>(i), round + 1, 0);
    const Count begun = counted(nodes_, Kind::kBegin);
    return {over.messages + begun.messages, over.bytes + begun.bytes};
  }

 private:
  /// `received` by the leader, and what it said since: one message of this kind to everybody.
  Count counted(int received, Kind kind) {
    Count count{received};
    for (const OutgoingMessage& send : harness_.coordinator.outbox().take_messages()) {
      EXPECT_EQ(send.message.kind, kind);
      EncodedMessage encoded(send.message);
      for (std::size_t i = 0; i < send.to.size(); ++i) {
        ++count.messages;
        count.bytes += (send.selves.empty() ? encoded.bytes() : encoded.bytes_for(send.selves[i])).size();
      }
    }
    return count;
  }

  int nodes_;
  CoordinatorHarness harness_;
  std::string report_;
};

TEST(MessageCount, IsTwoToMeetAndFourARoundForEachNodeHoweverManyThereAre) {
  for (const int nodes : {2, 50, 700, 5000}) {
    ManyNodes job(nodes);
    EXPECT_EQ(job.meet().messages, 2 * nodes);
    EXPECT_EQ(job.end_a_round(0).messages, 4 * nodes);
    EXPECT_EQ(job.end_a_round(1).messages, 4 * nodes);
  }
}

/// The bytes that a node has to know of the others do not grow with them, so that the bytes of a job grow with its
/// nodes.
TEST(MessageCount, BytesForANodeDoNotGrowWithTheirNumber) {
  std::size_t for_a_node = 2400;
  for (const int nodes : {50, 700, 5000}) {
    ManyNodes job(nodes);
    const std::size_t bytes = job.meet().bytes + job.end_a_round(0).bytes;
    EXPECT_LE(bytes / static_cast<std::size_t>(nodes), for_a_node + 30) << "longer numbers and names";
    for_a_node = bytes / static_cast<std::size_t>(nodes);
  }
}

}  // namespace
}  // namespace lrun::launcher
