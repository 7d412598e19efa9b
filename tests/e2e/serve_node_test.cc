// What ssh starts on a host: lrun with its orders on standard input. The test is the one that gives them.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/duration.h"
#include "base/fd.h"
#include "lrun_version.h"
#include "process/fork_child.h"
#include "remote/frames.h"
#include "remote/ssh.h"
#include "support/lrun_process.h"
#include "support/temporary_folder.h"
#include "support/with_more_time.h"

namespace lrun::test {
using namespace launcher;
namespace {

using Kind = NodeFrame::Kind;

class Node {
 public:
  /// \param most_descriptors  that it may have; 0: as many as we.
  explicit Node(rlim_t most_descriptors = 0)
      : in_(make_pipe()), lrun_({kNodeWord}, {.before_exec = [this, most_descriptors] {
                                  ::dup2(in_.read.get(), STDIN_FILENO);
                                  if (most_descriptors > 0) limit_descriptors(most_descriptors);
                                }}) {
    in_.read.reset();
  }

  void send(Kind kind, const std::string& payload) const {
    const std::string bytes = encode(kind, payload);
    EXPECT_EQ(::write(in_.write.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }

  /// Sends the order for a job of one host, whose only worker runs this shell script.
  void order(const std::string& script, Duration most_silence = Duration(0)) const {
    NodeOrder order;
    order.version = LRUN_VERSION;
    order.command = {"sh", "-c", script};
    order.folder = "/";
    order.name = "a";
    order.nodes = {"a"};
    order.most_silence = static_cast<int>(most_silence.count());
    send(Kind::kOrder, encode(order));
  }

  /// Once it has answered.
  void go() {
    EXPECT_TRUE(lrun_.read_until([this] { return !frames().empty(); })) << lrun_.err();
    send(Kind::kGo, encode(NodeGo{0, "127.0.0.1", {}}));
  }

  void run(const std::string& script, Duration most_silence = Duration(0)) {
    order(script, most_silence);
    go();
  }

  /// All that were read.
  [[nodiscard]] std::vector<NodeFrame> frames() const {
    NodeFrameReader reader(kNodeHandshake);
    reader.feed(lrun_.out());
    std::vector<NodeFrame> frames;
    while (std::optional<NodeFrame> frame = reader.next()) frames.push_back(std::move(*frame));
    return frames;
  }

  LrunProcess& process() { return lrun_; }

 private:
  static void limit_descriptors(rlim_t most) {
    for (const int fd : open_descriptors()) {
      if (fd > STDERR_FILENO) ::close(fd);
    }
    const rlimit limit{most, most};
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }

  Pipe in_;
  LrunProcess lrun_;
};

TEST(ServeNode, LosesNothingWhenItsReaderComesLongAfterTheWorkers) {
  // What the node keeps itself, what its own standard output holds, and half of the pipe from the workers' launcher,
  // which can end then.
  constexpr std::size_t kLines = (1024 + 64 + 32 + 24) * 1024 / 1000;
  TemporaryFolder folder;
  const std::string done = (folder.path() / "done").string();
  Node node;
  node.run("yes " + std::string(999, 'x') + " | head -n " + std::to_string(kLines) + "; touch " + done);
  const pid_t pid = node.process().pid();
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(done) && living_children(pid).empty(); }));
  const auto has_ended = [pid] { return process_state(pid) == 'Z'; };
  EXPECT_FALSE(eventually(has_ended, 1500ms)) << "longer than it waits for streams that others hold open";
  EXPECT_EQ(node.process().wait().code, 0) << node.process().err();
  std::size_t bytes = 0;
  const std::vector<NodeFrame> frames = node.frames();
  for (const NodeFrame& frame : frames) {
    if (frame.kind == Kind::kOut)
      bytes += static_cast<std::size_t>(std::count(frame.payload.begin(), frame.payload.end(), 'x'));
  }
  EXPECT_EQ(bytes, kLines * 999);
  EXPECT_EQ(frames.back(), (NodeFrame{Kind::kEnded, "0 0"}));
}

TEST(ServeNode, EndsItsWorkersWhenTheHeadFallsSilent) {
  Node node;
  node.run("exec sleep 1000", 2000ms);
  const LrunEnd end = node.process().wait();  // its standard input stays open
  EXPECT_NE(end.code, 0) << node.process().err();
  EXPECT_TRUE(node.process().processes().empty()) << "something has survived";
}

TEST(ServeNode, EndsWhenItIsNeverToldToGo) {
  Node node;
  node.order("true", 100ms);
  EXPECT_EQ(node.process().wait().code, 125) << node.process().err();
}

TEST(ServeNode, RunsOnWhileTheHeadIsPausedAndCountsAgainAfterwards) {
  with_more_time([](int factor) -> std::string {
    const Duration most_silence = 1s * factor;
    TemporaryFolder folder;
    const std::string started = (folder.path() / "started").string();
    Node node;
    node.order("touch " + started + "; exec sleep 1000", most_silence);
    node.send(Kind::kPaused, "");
    node.go();
    node.send(Kind::kPaused, "");
    const auto has_ended = [pid = node.process().pid()] { return process_state(pid) == 'Z'; };
    (void)eventually([&] { return has_ended() || std::filesystem::exists(started); });
    if (eventually(has_ended, 2 * most_silence)) return "a head that was suspended was taken for gone";
    node.send(Kind::kHeartbeat, "");
    return node.process().wait().code != 0 ? "" : "it does not count again: " + node.process().err();
  });
}

TEST(ServeNode, TellsItsEndWhenItCannotStartALauncher) {
  Node node(10);  // enough to answer, too few for the pipes of a child
  node.run("true");
  EXPECT_EQ(node.process().wait().code, 125) << node.process().err();
  const std::vector<NodeFrame> frames = node.frames();
  ASSERT_EQ(frames.size(), 3U) << node.process().err();
  EXPECT_EQ(frames[0].kind, Kind::kAnswer);
  EXPECT_EQ(frames[1].kind, Kind::kRefusal);
  EXPECT_NE(frames[1].payload.find("Too many open files"), std::string::npos) << frames[1].payload;
  EXPECT_EQ(frames[2], (NodeFrame{Kind::kEnded, "0 125"}));
}

}  // namespace
}  // namespace lrun::test
