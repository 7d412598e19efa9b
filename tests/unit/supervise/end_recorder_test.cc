#include "supervise/end_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "unit/supervise/supervised_shells.h"

namespace lrun::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Records of ends without a supervisor.
class EndRecorderTest : public SupervisedShells {
 protected:
  FailureRecord end_of(const std::string& script, const std::function<void(EndRecorder&)>& before = {}) {
    node_ = node_with(1);
    start_shells(loop, group, logs, {script});
    EndRecorder recorder(node_, logs, facts.records);
    if (before) before(recorder);
    std::optional<FailureRecord> record;
    group.on_ended([&](Worker& worker, const ExitStatus& status) {
      logs.worker_ended(worker.local_rank);
      record = recorder.ended(worker, status);
      loop.stop();
    });
    run_until([&] { return record.has_value(); });
    return record.value_or(FailureRecord());
  }

  test::TemporaryFolder folder_;
};

TEST_F(EndRecorderTest, LastLinesAreTheEvidenceOfAFailure) {
  const FailureRecord record = end_of("echo 'ValueError: bad batch' >&2; exit 1");
  EXPECT_EQ(record.value, 1);
  EXPECT_THAT(record.evidence, ElementsAre("ValueError: bad batch"));
}

TEST_F(EndRecorderTest, ASuccessHasNoEvidence) { EXPECT_THAT(end_of("echo words").evidence, IsEmpty()); }

TEST_F(EndRecorderTest, TheErrorFileOfTheWorkerIsRead) {
  facts.records.error_folder = folder_.path();
  std::filesystem::create_directory(folder_ / "0");
  std::ofstream(folder_ / "0/error.json")
      << R"({"message": {"message": "KeyError: 'x'", "extraInfo": {"timestamp": "7"}}})";
  const FailureRecord record = end_of("exit 1");
  EXPECT_EQ(record.error_file, (folder_ / "0/error.json").string());
  EXPECT_EQ(record.error, "KeyError: 'x'");
  EXPECT_EQ(record.error_time, 7);
}

TEST_F(EndRecorderTest, AStopSignalIsInTheRecord) {
  const FailureRecord record =
      end_of("sleep 0.05", [this](EndRecorder& recorder) { recorder.note_stop(group.workers().front(), SIGTERM); });
  EXPECT_EQ(record.stop_signal, SIGTERM);
  EXPECT_TRUE(record.stopped_by_lrun());
}

TEST_F(EndRecorderTest, TheDeviceIsNamedWhereThereIsOne) {
  node_ = node_with(1);
  node_.workers.front().devices = {{DeviceKind::kGpu, "2"}};
  start_shells(loop, group, logs, {"exit 1"});
  EndRecorder recorder(node_, logs, {});
  const FailureRecord record = recorder.lost(group.workers().front());
  EXPECT_EQ(record.device, "GPU 2");
  EXPECT_EQ(record.ending, FailureRecord::Ending::kLost);
}

}  // namespace
}  // namespace lrun::launcher
