#include <gtest/gtest.h>
#include <lrun/checkpoint.h>
#include <lrun/error.h>
#include <lrun/session.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <set>
#include <system_error>

#include "process/progress.h"
#include "runtime/support/thread_ranks.h"
#include "support/temporary_folder.h"

namespace lrun::detail {
namespace {

using test::run_sessions;
using test::TemporaryFolder;

std::set<std::string> names_in(const std::filesystem::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}

std::vector<std::uint64_t> steps(std::vector<std::uint64_t> numbers) { return numbers; }

void change_a_byte(const std::filesystem::path& path) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(70);
  file.put('?');
}

/// Collects the warnings of all ranks.
class Warnings {
 public:
  CheckpointFolderOptions options(std::size_t keep = 3) {
    return {keep, true, [this](const std::string& text) {
              const std::lock_guard lock(mutex_);
              texts_.push_back(text);
            }};
  }
  [[nodiscard]] std::vector<std::string> texts() const { return texts_; }

 private:
  std::mutex mutex_;
  std::vector<std::string> texts_;
};

std::string part_of(int rank, std::uint64_t step) {
  return std::string(100, static_cast<char>('a' + rank)) + std::to_string(step);
}

class CheckpointFolders : public testing::TestWithParam<int> {};

TEST_P(CheckpointFolders, GiveAllRanksTheNewestWholeCheckpoint) {
  const TemporaryFolder place;
  for (const bool background : {true, false}) {
    run_sessions(GetParam(), [&](Session& session) {
      CheckpointFolder folder(session, place / "made", {.background = background});
      for (const std::uint64_t step : steps({1, 2, 10})) folder.save(step, "state of " + std::to_string(step));
      session.barrier();
      const auto newest = folder.newest();
      EXPECT_EQ(newest, (FoundCheckpoint{10, 0}));
      EXPECT_EQ(folder.load(*newest), "state of 10");
    });
  }
}

TEST_P(CheckpointFolders, GiveEveryRankItsPart) {
  const TemporaryFolder place;
  run_sessions(GetParam(), [&](Session& session) {
    CheckpointFolder folder(session, place.path());
    EXPECT_EQ(folder.newest(), std::nullopt);
    for (const std::uint64_t step : steps({5, 6})) folder.save_part(step, part_of(session.rank(), step));
    session.barrier();
    const auto newest = folder.newest();
    EXPECT_EQ(newest, (FoundCheckpoint{6, session.world_size()}));
    EXPECT_EQ(folder.load_part(*newest, session.rank()), part_of(session.rank(), 6));
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, CheckpointFolders, testing::Values(1, 2, 4),
                         [](const auto& world) { return std::to_string(world.param); });

TEST(CheckpointFolder, GivesAllPartsToAWorldOfAnotherSize) {
  const TemporaryFolder place;
  run_sessions(
      3, [&](Session& session) { CheckpointFolder(session, place.path()).save_part(9, part_of(session.rank(), 9)); });
  run_sessions(2, [&](Session& session) {
    CheckpointFolder folder(session, place.path());
    const auto newest = folder.newest();
    EXPECT_EQ(newest, (FoundCheckpoint{9, 3}));
    for (int part = 0; part < 3; ++part) EXPECT_EQ(folder.load_part(*newest, part), part_of(part, 9));
    EXPECT_THROW((void)folder.load_part(*newest, 3), std::invalid_argument);
    EXPECT_THROW((void)folder.load(*newest), std::invalid_argument);
  });
}

TEST(CheckpointFolder, PassesByABadOneAndNamesIt) {
  const TemporaryFolder place;
  Warnings warnings;
  run_sessions(2, [&](Session& session) {
    CheckpointFolder folder(session, place.path(), warnings.options());
    for (const std::uint64_t step : steps({1, 2, 3})) folder.save(step, "state of " + std::to_string(step));
    folder.wait();
    if (session.is_rank_zero()) {
      change_a_byte(place / "step-000000000003.ckpt");
      std::filesystem::resize_file(place / "step-000000000002.ckpt", 66);
    }
    const auto newest = folder.newest();
    EXPECT_EQ(newest, (FoundCheckpoint{1, 0}));
    EXPECT_EQ(folder.load(*newest), "state of 1");
  });
  const std::string begin = "checkpoint '" + place.path().string() + "/step-00000000000";
  EXPECT_EQ(warnings.texts(),
            (std::vector<std::string>{begin + "3.ckpt' cannot be used: its content is damaged: the checksum is wrong",
                                      begin + "2.ckpt' cannot be used: it is cut off: 2 of 10 bytes"}));
}

TEST(CheckpointFolder, PassesByAShardedOneOfWhichAPartIsMissingBadOrOfAnotherSave) {
  const TemporaryFolder place;
  Warnings warnings;
  run_sessions(2, [&](Session& session) {
    CheckpointFolder folder(session, place.path(), warnings.options(0));
    for (const std::uint64_t step : steps({1, 2, 3, 4, 5})) folder.save_part(step, part_of(session.rank(), step));
    session.barrier();
    if (session.is_rank_zero()) {
      std::filesystem::remove(place / "step-000000000005.part-1-of-2.ckpt");
      change_a_byte(place / "step-000000000004.part-0-of-2.ckpt");
      // Begun again after a restart and killed before it was complete: one part of step 3 is of the second save.
      std::filesystem::copy(place / "step-000000000003.manifest.ckpt", place / "kept");
      std::filesystem::copy(place / "step-000000000003.part-1-of-2.ckpt", place / "kept-part");
    }
    folder.save_part(3, part_of(session.rank(), 3));
    session.barrier();
    if (session.is_rank_zero()) {
      const auto over = std::filesystem::copy_options::overwrite_existing;
      std::filesystem::copy(place / "kept", place / "step-000000000003.manifest.ckpt", over);
      std::filesystem::copy(place / "kept-part", place / "step-000000000003.part-1-of-2.ckpt", over);
      change_a_byte(place / "step-000000000002.manifest.ckpt");
    }
    EXPECT_EQ(folder.newest(), (FoundCheckpoint{1, 2}));
  });
  auto texts = warnings.texts();
  const auto said = [&](const std::string& name, const std::string& why) {
    const std::string text = "checkpoint '" + (place / name).string() + "' cannot be used: " + why;
    return std::count(texts.begin(), texts.end(), text);
  };
  EXPECT_EQ(said("step-000000000005.part-1-of-2.ckpt", "it is missing"), 1);
  EXPECT_EQ(said("step-000000000004.part-0-of-2.ckpt", "its content is damaged: the checksum is wrong"), 1);
  EXPECT_EQ(said("step-000000000003.part-0-of-2.ckpt", "it is of another save than its manifest"), 1);
  EXPECT_EQ(said("step-000000000002.manifest.ckpt", "its content is damaged: the checksum is wrong"), 1);
  EXPECT_EQ(texts.size(), 4U);
}

TEST(CheckpointFolder, KeepsTheNewestAndWhatIsNotItsOwn) {
  const TemporaryFolder place;
  std::ofstream(place / "notes.txt") << "mine";
  std::ofstream(place / "step-000000000001.ckpt.tmp") << "half written by a process that was killed";
  std::ofstream(place / "step-000000000002.part-0-of-4.ckpt") << "never completed";
  std::ofstream(place / "step-000000000099.ckpt") << "later";
  run_sessions(2, [&](Session& session) {
    CheckpointFolder folder(session, place.path(), {.keep = 2});
    for (const std::uint64_t step : steps({3, 4})) folder.save_part(step, "part");
    for (const std::uint64_t step : steps({5, 6})) folder.save(step, "whole");
    session.barrier();
    folder.save_part(7, "part");
  });
  EXPECT_EQ(names_in(place.path()),
            (std::set<std::string>{"notes.txt", "step-000000000006.ckpt", "step-000000000007.manifest.ckpt",
                                   "step-000000000007.part-0-of-2.ckpt", "step-000000000007.part-1-of-2.ckpt",
                                   "step-000000000099.ckpt"}));
}

TEST(CheckpointFolder, LetsNoDamagedOnePushAGoodOneOut) {
  const TemporaryFolder place;
  run_sessions(1, [&](Session& session) {
    CheckpointFolder folder(session, place.path(), {.keep = 2, .background = false});
    for (const std::uint64_t step : steps({10, 20, 30, 40})) folder.save(step, "state");
    std::filesystem::resize_file(place / "step-000000000040.ckpt", 5);
    folder.save(50, "state");
    EXPECT_EQ(names_in(place.path()),
              (std::set<std::string>{"step-000000000030.ckpt", "step-000000000040.ckpt", "step-000000000050.ckpt"}));
    folder.save(60, "state");
    EXPECT_EQ(names_in(place.path()), (std::set<std::string>{"step-000000000050.ckpt", "step-000000000060.ckpt"}))
        << "nobody needs a damaged one that is older than all good ones";
  });
}

TEST(CheckpointFolder, TellsAllRanksThatAPartCouldNotBeWritten) {
  const TemporaryFolder place;
  std::filesystem::create_directory(place / "step-000000000001.part-1-of-3.ckpt.tmp");
  run_sessions(3, [&](Session& session) {
    CheckpointFolder folder(session, place.path());
    try {
      folder.save_part(1, "part");
      ADD_FAILURE() << "rank " << session.rank() << " heard of nothing";
    } catch (const CheckpointError& error) {
      EXPECT_NE(session.rank(), 1);
      EXPECT_STREQ(error.what(), "checkpoint of step 1 is not complete: rank 1 could not write its part");
    } catch (const std::system_error&) {
      EXPECT_EQ(session.rank(), 1);
    }
    EXPECT_EQ(folder.newest(), std::nullopt);
  });
}

TEST(CheckpointFolder, ReportsAFailureInTheBackgroundAtTheNextCall) {
  const TemporaryFolder place;
  Warnings warnings;
  run_sessions(1, [&](Session& session) {
    CheckpointFolder folder(session, place.path(), warnings.options());
    std::filesystem::create_directory(place / "step-000000000001.ckpt.tmp");
    folder.save(1, "state");
    EXPECT_THROW(folder.wait(), std::system_error);
    folder.save(1, "state");
  });
  ASSERT_EQ(warnings.texts().size(), 1U);
  EXPECT_TRUE(warnings.texts()[0].starts_with("the last checkpoint was not written: cannot create '"))
      << warnings.texts()[0];
}

/// Gives the folders of checkpoints of a test a memory.
class Memory {
 public:
  Memory() { ::setenv("LRUN_MEMORY_DIR", folder_.path().c_str(), 1); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { ::unsetenv("LRUN_MEMORY_DIR"); }

  /// Of the only folder of checkpoints.
  [[nodiscard]] std::filesystem::path place() const {
    const std::filesystem::directory_iterator folders(folder_.path());
    return folders == std::filesystem::directory_iterator() ? folder_.path() / "none" : folders->path();
  }

 private:
  TemporaryFolder folder_;
};

TEST_P(CheckpointFolders, TellTheLauncherOfEachCheckpointThatIsKept) {
  const TemporaryFolder place;
  const Memory memory;
  const ProgressBoard board(1);
  ::setenv(kProgressVariable, ProgressBoard::variable(board.fd(), 0).c_str(), 1);
  run_sessions(GetParam(), [&](Session& session) {
    CheckpointFolder folder(session, place / "disk");
    EXPECT_TRUE(folder.save_in_memory(8, "state of 8"));
    session.barrier();
    EXPECT_EQ(board.of(0).checkpoint_steady_ns, 0) << "that is gone with the run";
    session.barrier();
    folder.save(9, "state of 9");
    folder.wait();
    session.barrier();
    EXPECT_GT(board.of(0).checkpoint_steady_ns, 0);
  });
  const std::int64_t of_folder = board.of(0).checkpoint_steady_ns;
  write_checkpoint(place / "file", "state");
  EXPECT_GT(board.of(0).checkpoint_steady_ns, of_folder);
  ::unsetenv(kProgressVariable);
}

TEST_P(CheckpointFolders, GiveTheNewestOfMemoryAndDisk) {
  const TemporaryFolder place;
  const Memory memory;
  run_sessions(GetParam(), [&](Session& session) {
    CheckpointFolder folder(session, place / "disk");
    const auto newest = [&] {
      folder.wait();
      session.barrier();
      const auto found = folder.newest();
      EXPECT_EQ(found ? folder.load(*found) : "", found ? "state of " + std::to_string(found->step) : "none");
      session.barrier();
      return found;
    };
    EXPECT_TRUE(folder.save_in_memory(8, "state of 8"));
    EXPECT_EQ(newest(), (FoundCheckpoint{8, 0, true}));
    EXPECT_TRUE(folder.save_in_memory(9, "state of 9"));
    EXPECT_EQ(newest(), (FoundCheckpoint{9, 0, true}));
    folder.save(9, "state of 9");
    EXPECT_EQ(newest(), (FoundCheckpoint{9, 0, false})) << "an epoch's last";
    folder.save(10, "state of 10");
    EXPECT_EQ(newest(), (FoundCheckpoint{10, 0, false}));
    EXPECT_TRUE(folder.save_in_memory(11, "state of 11"));
    EXPECT_EQ(newest(), (FoundCheckpoint{11, 0, true}));
    EXPECT_EQ(CheckpointFolder(session, place / "other").newest(), std::nullopt);
  });
  EXPECT_EQ(names_in(place / "disk"), (std::set<std::string>{"step-000000000009.ckpt", "step-000000000010.ckpt"}));
  change_a_byte(memory.place() / "step-000000000011.ckpt");
  run_sessions(GetParam(), [&](Session& session) {
    CheckpointFolder folder(session, place / "disk", {.warn = [](const std::string&) {}});
    EXPECT_EQ(folder.newest(), (FoundCheckpoint{10, 0, false}));
  });
}

TEST(CheckpointFolder, ForgetsLaterStepsInMemoryWhenTheTrainingGoesBack) {
  const TemporaryFolder place;
  const Memory memory;
  run_sessions(1, [&](Session& session) {
    CheckpointFolder folder(session, place / "disk", {.background = false});
    const auto kept = [&] { return names_in(memory.place()); };
    for (const std::uint64_t step : steps({7, 9})) EXPECT_TRUE(folder.save_in_memory(step, "state"));
    std::ofstream(memory.place() / "step-000000000010.ckpt.tmp") << "of a killed process";
    EXPECT_TRUE(folder.save_in_memory(9, "state"));
    EXPECT_EQ(kept(), (std::set<std::string>{"step-000000000009.ckpt"}));
    EXPECT_TRUE(folder.save_in_memory(8, "state")) << "it went back";
    EXPECT_EQ(kept(), (std::set<std::string>{"step-000000000008.ckpt"}));
    folder.save(8, "state");
    EXPECT_EQ(kept(), (std::set<std::string>{"step-000000000008.ckpt"}));
    folder.save(6, "state");
    EXPECT_EQ(kept(), std::set<std::string>());
    EXPECT_TRUE(folder.save_in_memory(7, "state"));
    folder.save_part(5, "part");
    EXPECT_EQ(kept(), std::set<std::string>());
  });
}

TEST(CheckpointFolder, SaysThatItCannotSaveInMemory) {
  const TemporaryFolder place;
  ::unsetenv("LRUN_MEMORY_DIR");
  run_sessions(2, [&](Session& session) {
    CheckpointFolder folder(session, place / "disk");
    EXPECT_EQ(folder.save_in_memory(1, "state"), !session.is_rank_zero());
    EXPECT_EQ(folder.newest(), std::nullopt);
  });
  const Memory memory;
  run_sessions(1, [&](Session& session) {
    Warnings warnings;
    CheckpointFolder folder(session, place / "disk", warnings.options());
    EXPECT_TRUE(folder.save_in_memory(1, "state"));
    std::filesystem::remove_all(memory.place().parent_path());
    for (const std::uint64_t step : steps({2, 3})) EXPECT_FALSE(folder.save_in_memory(step, "state"));
    EXPECT_EQ(folder.newest(), std::nullopt);
    ASSERT_EQ(warnings.texts().size(), 1U);
    EXPECT_EQ(warnings.texts()[0].find("a checkpoint is not saved in memory: cannot make '/"), 0U)
        << warnings.texts()[0];
  });
}

TEST(CheckpointFolder, RefusesAFolderThatCannotBeMade) {
  const TemporaryFolder place;
  std::ofstream(place / "file") << "no folder";
  run_sessions(1, [&](Session& session) {
    EXPECT_THROW(CheckpointFolder(session, place / "file" / "folder"), std::system_error);
  });
}

TEST(LoadCheckpoint, GivesAllRanksRankZerosFileOrTheNewestOfAFolder) {
  const TemporaryFolder place;
  run_sessions(3, [&](Session& session) {
    EXPECT_EQ(load_checkpoint(session, place / "c"), std::nullopt);
    session.barrier();
    if (session.is_rank_zero()) write_checkpoint(place / "c", "state", 4);
    EXPECT_EQ(load_checkpoint(session, place / "c"), (Checkpoint{4, "state"}));
    CheckpointFolder folder(session, place / "folder");
    folder.save(2, "state of 2");
    folder.save_part(3, "sharded");
    EXPECT_EQ(load_checkpoint(session, place / "folder"), (Checkpoint{2, "state of 2"}));
  });
}

TEST(LoadCheckpoint, SaysThatItPassesByAShardedOne) {
  const TemporaryFolder place;
  testing::internal::CaptureStderr();
  run_sessions(2, [&](Session& session) {
    CheckpointFolder(session, place.path()).save_part(3, "part");
    session.barrier();
    EXPECT_EQ(load_checkpoint(session, place.path()), std::nullopt);
  });
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "lrun: warning: '" + (place / "step-000000000003.manifest.ckpt").string() +
                "' is of a sharded checkpoint, which is not looked at here: CheckpointFolder::load_part() loads it\n");
}

TEST(LoadCheckpoint, SaysThatThereIsNothingWhereTheUserPointedAt) {
  const TemporaryFolder place;
  ::setenv("LRUN_RESUME", (place / "none").c_str(), 1);
  testing::internal::CaptureStderr();
  {
    Session session;
    EXPECT_EQ(load_checkpoint(session, place / "other"), std::nullopt) << "not of that one";
    EXPECT_EQ(load_checkpoint(session, place / "none"), std::nullopt);
  }
  ::unsetenv("LRUN_RESUME");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "lrun: warning: LRUN_RESUME names '" + (place / "none").string() +
                                                        "', where no checkpoint is to go on from\n");
}

TEST(LoadCheckpoint, FailsOnAllRanksAlike) {
  const TemporaryFolder place;
  std::ofstream(place / "c") << "text";
  run_sessions(2, [&](Session& session) {
    try {
      (void)load_checkpoint(session, place / "c");
      ADD_FAILURE() << "rank " << session.rank() << " heard of nothing";
    } catch (const CheckpointError& error) {
      EXPECT_EQ(error.what(),
                "checkpoint '" + (place / "c").string() + "' cannot be used: it is not a checkpoint of liblrun");
    }
  });
}

}  // namespace
}  // namespace lrun::detail
