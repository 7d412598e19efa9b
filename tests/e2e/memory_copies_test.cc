// Files in LRUN_MEMORY_DIR outlive their node: launchers of one job on several loopback addresses, which stand for
// hosts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "process/forked_helper.h"
#include "support/elastic_jobs.h"

namespace lrun::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

namespace fs = std::filesystem;

class MemoryCopies : public ElasticJobs {
 protected:
  void SetUp() override {
    if (::access("/dev/shm", W_OK) != 0) GTEST_SKIP() << "there is no /dev/shm";
  }

  LrunProcess& start(int host, int node_rank, const Words& more = {}) {
    return job_.start(joined({"--local-addr", "127.0.0." + std::to_string(host), "--node-rank",
                              std::to_string(node_rank), "--devices", "1"},
                             more),
                      saving_program());
  }

  /// A worker that says what it finds, saves the name of its launcher's node, and runs until the test ends it.
  [[nodiscard]] Words saving_program() const {
    return shell(
        "cd $LRUN_MEMORY_DIR; echo rank $RANK found $(cat state 2> /dev/null || echo nothing) in $PWD.; "
        "[ -e state ] || { echo state of $RANK > new.tmp; mv new.tmp state; }; while [ ! -e " +
        end_.string() + " ]; do sleep 0.1; done");
  }

  static fs::path folder_of(LrunProcess& node) {
    EXPECT_TRUE(node.wait_for(" in /dev/shm/") && node.wait_for("/workers.\n")) << node.err();
    const std::size_t begin = node.out().find("/dev/shm/");
    return fs::path(node.out().substr(begin, node.out().find("/workers.\n", begin) - begin));
  }

  static bool has_copy_of(const fs::path& folder, const std::string& name) {
    const fs::directory_iterator entries(folder);
    return std::any_of(fs::begin(entries), fs::end(entries), [&](const fs::directory_entry& entry) {
      return entry.path().filename().native().starts_with("copies-") && fs::exists(entry.path() / name);
    });
  }

  /// Waits until a node has copies of another one's files, and has told its launcher: the second file comes after that.
  static void wait_for_copies(LrunProcess& keeper, LrunProcess& owner) {
    const fs::path folder = folder_of(keeper);
    EXPECT_TRUE(eventually([&] { return has_copy_of(folder, "state"); })) << folder;
    std::ofstream(folder_of(owner) / "workers" / "later") << "text\n";
    EXPECT_TRUE(eventually([&] { return has_copy_of(folder, "later"); })) << folder;
  }

  static std::vector<pid_t> copiers_of(LrunProcess& node) {
    std::vector<pid_t> pids = node.processes();
    std::erase_if(pids, [](pid_t pid) {
      std::string name;
      std::getline(std::ifstream("/proc/" + std::to_string(pid) + "/comm"), name);
      return name != kCopierName;
    });
    return pids;
  }

  Job job_{{"--nnodes", "2"}};
};

TEST_F(MemoryCopies, AreThereForTheNodeThatReplacesALostOne) {
  LrunProcess& first = start(1, 0);
  LrunProcess& lost = start(2, 1);
  ASSERT_TRUE(first.wait_for("rank 0 found nothing") && lost.wait_for("rank 1 found nothing")) << first.err();
  wait_for_copies(first, lost);
  kill_whole(lost);
  LrunProcess& replacement = start(3, 1);
  ASSERT_TRUE(replacement.wait_for("rank 1 found state of 1 in ")) << replacement.err();
  EXPECT_TRUE(first.wait_for("rank 0 found state of 0 in ")) << "it has its own still: " << first.err();
  end();
  expect_success({&first, &replacement});
  EXPECT_THAT(
      replacement.err(),
      HasSubstr("lrun: note: the files in memory of the lost node rank 1 are here again: 2 files, 16 bytes, saved "));
  EXPECT_THAT(first.err(), Not(HasSubstr("here again")));
}

TEST_F(MemoryCopies, AreNotThereForLaunchersOfOneHost) {
  LrunProcess& first = start(1, 0);
  LrunProcess& lost = start(1, 1);
  ASSERT_TRUE(first.wait_for("rank 0 found nothing") && lost.wait_for("rank 1 found nothing")) << first.err();
  kill_whole(lost);
  LrunProcess& replacement = start(1, 1);
  EXPECT_TRUE(replacement.wait_for("rank 1 found nothing in ")) << replacement.err();
  end();
  expect_success({&first, &replacement});
}

TEST_F(MemoryCopies, AreWaitedForUntilASignalComes) {
  LrunProcess& first = start(1, 0);
  LrunProcess& lost = start(2, 1);
  ASSERT_TRUE(first.wait_for("rank 0 found nothing") && lost.wait_for("rank 1 found nothing")) << first.err();
  wait_for_copies(first, lost);
  const std::vector<pid_t> copiers = copiers_of(first);
  ASSERT_EQ(copiers.size(), 1U);
  ASSERT_EQ(::kill(copiers.front(), SIGSTOP), 0);  // it gives no files
  kill_whole(lost);
  LrunProcess& replacement = start(3, 1);
  ASSERT_TRUE(first.wait_for("rank 0 found state of 0")) << "the round has begun: " << first.err();
  replacement.signal(SIGTERM);
  EXPECT_EQ(replacement.wait().signal_number, SIGTERM) << replacement.err();
  EXPECT_THAT(replacement.out(), Not(HasSubstr("found"))) << "no worker was started without its files";
  ::kill(copiers.front(), SIGCONT);
  first.signal(SIGTERM);
  EXPECT_EQ(first.wait().signal_number, SIGTERM) << first.err();
}

TEST_F(MemoryCopies, AreMadeAgainWhereTheCopierWasKilled) {
  LrunProcess& first = start(1, 0);
  LrunProcess& lost = start(2, 1);
  ASSERT_TRUE(first.wait_for("rank 0 found nothing") && lost.wait_for("rank 1 found nothing")) << first.err();
  wait_for_copies(first, lost);
  const pid_t killed = copiers_of(first).front();
  ::kill(killed, SIGKILL);
  ASSERT_TRUE(eventually([&] {
    const std::vector<pid_t> now = copiers_of(first);
    return now.size() == 1 && now.front() != killed;
  }));
  ASSERT_TRUE(eventually([&] { return fs::exists(folder_of(first) / "copies-1" / "state"); })) << "all comes again";
  wait_for_copies(first, lost);
  kill_whole(lost);
  LrunProcess& replacement = start(3, 1);
  ASSERT_TRUE(replacement.wait_for("rank 1 found state of 1 in ")) << replacement.err();
  end();
  expect_success({&first, &replacement});
  EXPECT_THAT(first.err(), Not(HasSubstr("not copied")));
}

TEST_F(MemoryCopies, NeedNoProcessInARunOfOneNode) {
  LrunProcess lrun(joined({"-n", "1"}, saving_program()));
  ASSERT_TRUE(lrun.wait_for("rank 0 found nothing")) << lrun.err();
  EXPECT_TRUE(copiers_of(lrun).empty());
  end();
  EXPECT_EQ(lrun.wait().code, 0);
}

}  // namespace
}  // namespace lrun::test
