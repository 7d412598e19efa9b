#include "copies/received_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "support/log_test_support.h"
#include "support/temporary_folder.h"

namespace lrun::launcher {
namespace {

namespace fs = std::filesystem;
using Existing = ReceivedFiles::Existing;
using Names = std::vector<std::string>;

class ReceivedFilesTest : public ::testing::Test {
 protected:
  void open(Existing existing = Existing::kReplaced) { files_.emplace(folder(), staging(), existing); }
  [[nodiscard]] std::string folder() const { return outer_ / "files"; }
  [[nodiscard]] std::string staging() const { return outer_ / "files.new"; }
  void receive(const std::string& path, const std::string& content, bool is_valid = true) {
    files_->begin_file({.kind = CopyMessage::Kind::kFile,
                        .text = path,
                        .number = content.size(),
                        .mode = 0640,
                        .time_ns = 1'600'000'000'123'456'789});
    const std::size_t half = content.size() / 2;
    files_->add(std::string_view(content).substr(0, half));
    files_->add(std::string_view(content).substr(half));
    files_->end_file(is_valid);
  }
  /// 'path=content' of each file that others see.
  [[nodiscard]] Names seen() const {
    Names all;
    for (const auto& entry : fs::recursive_directory_iterator(folder())) {
      const std::string path = entry.path().lexically_relative(folder());
      all.push_back(entry.is_directory() ? path + '/' : path + '=' + content_of(entry.path()));
    }
    std::sort(all.begin(), all.end());
    return all;
  }

  TemporaryFolder outer_;
  std::optional<ReceivedFiles> files_;
};

TEST_F(ReceivedFilesTest, AreSeenAllAtOnce) {
  open();
  receive("a", "text");
  receive("inner/most/b", "more");
  EXPECT_EQ(seen(), Names());
  EXPECT_EQ(files_->count(), 0U);
  EXPECT_EQ(files_->bytes(), 0U);
  EXPECT_EQ(files_->staged_bytes(), 8U);
  EXPECT_EQ(files_->commit(true), 0);
  EXPECT_EQ(seen(), (Names{"a=text", "inner/", "inner/most/", "inner/most/b=more"}));
  EXPECT_EQ(files_->count(), 2U);
  EXPECT_EQ(files_->bytes(), 8U);
  EXPECT_TRUE(fs::is_empty(staging()));
}

TEST_F(ReceivedFilesTest, KeepTheirTimesAndModes) {
  open();
  receive("a", "text");
  EXPECT_EQ(files_->commit(false), 0);
  struct stat status {};
  ASSERT_EQ(::stat((folder() + "/a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mtim.tv_sec, 1'600'000'000);
  EXPECT_EQ(status.st_mtim.tv_nsec, 123'456'789);
  EXPECT_EQ(status.st_mode & 07777U, 0640U);
}

TEST_F(ReceivedFilesTest, ReplaceThoseThatAreThere) {
  open();
  receive("a", "old");
  receive("b", "stays");
  EXPECT_EQ(files_->commit(true), 0);
  receive("a", "newer");
  EXPECT_EQ(seen(), (Names{"a=old", "b=stays"}));
  EXPECT_EQ(files_->bytes() + files_->staged_bytes(), 13U) << "both are in memory until then";
  EXPECT_EQ(files_->bytes_after(false), 10U);
  EXPECT_EQ(files_->bytes_after(true), 5U);
  EXPECT_EQ(files_->commit(false), 0);
  EXPECT_EQ(seen(), (Names{"a=newer", "b=stays"}));
  EXPECT_EQ(files_->bytes(), 10U);
  EXPECT_EQ(files_->count(), 2U);
}

TEST_F(ReceivedFilesTest, GoWhereTheyDoNotComeWithAllOthers) {
  open();
  receive("a", "old");
  receive("inner/b", "old");
  EXPECT_EQ(files_->commit(true), 0);
  receive("c", "new");
  EXPECT_EQ(files_->commit(true), 0);
  EXPECT_EQ(seen(), Names{"c=new"});
  EXPECT_EQ(files_->bytes(), 3U);
}

TEST_F(ReceivedFilesTest, GoWithTheFoldersThatAreEmptyThen) {
  open();
  receive("x/y/a", "text");
  receive("x/b", "text");
  EXPECT_EQ(files_->commit(true), 0);
  files_->gone("x/y/a");
  files_->gone("was/never/there");
  EXPECT_EQ(seen().size(), 4U) << "not before the commit";
  EXPECT_EQ(files_->commit(false), 0);
  EXPECT_EQ(seen(), (Names{"x/", "x/b=text"}));
  files_->gone("x/b");
  EXPECT_EQ(files_->commit(false), 0);
  EXPECT_EQ(seen(), Names());
  EXPECT_EQ(files_->bytes(), 0U);
}

TEST_F(ReceivedFilesTest, ReplaceAFileByAFolderAndBack) {
  open();
  receive("x", "file");
  EXPECT_EQ(files_->commit(true), 0);
  files_->gone("x");
  receive("x/a", "inner");
  EXPECT_EQ(files_->commit(false), 0);
  EXPECT_EQ(seen(), (Names{"x/", "x/a=inner"}));
  files_->gone("x/a");
  receive("x", "file");
  EXPECT_EQ(files_->commit(false), 0);
  EXPECT_EQ(seen(), Names{"x=file"});
}

TEST_F(ReceivedFilesTest, AreAllDroppedWhereOneOfTheirNamesStays) {
  fs::create_directory(folder());
  std::ofstream(fs::path(folder()) / "a") << "of this node";
  open(Existing::kStays);
  receive("a", "of the other");
  receive("b", "new");
  EXPECT_EQ(files_->commit(false), 0);
  EXPECT_EQ(seen(), Names{"a=of this node"});
  EXPECT_EQ(files_->count(), 0U);
  EXPECT_EQ(files_->bytes(), 0U);
  receive("b", "new");
  EXPECT_EQ(files_->commit(false), 0);
  EXPECT_EQ(seen(), (Names{"a=of this node", "b=new"}));
}

TEST_F(ReceivedFilesTest, DoNotCountWhereTheyAreInvalid) {
  open();
  receive("a", "old");
  EXPECT_EQ(files_->commit(true), 0);
  receive("a", "half of", false);
  receive("b", "half of", false);
  EXPECT_EQ(files_->commit(false), 0);
  EXPECT_EQ(seen(), Names{"a=old"});
  EXPECT_EQ(files_->bytes(), 3U);
}

TEST_F(ReceivedFilesTest, StayWhereAnInvalidOneComesWithAllOthers) {
  open();
  receive("a", "old");
  receive("b", "old");
  EXPECT_EQ(files_->commit(true), 0);
  receive("a", "half of", false);
  EXPECT_EQ(files_->commit(true), 0);
  EXPECT_EQ(seen(), Names{"a=old"});
}

TEST_F(ReceivedFilesTest, AreDropped) {
  open();
  receive("a", "old");
  EXPECT_EQ(files_->commit(true), 0);
  receive("b", "new");
  files_->gone("a");
  files_->begin_file({.kind = CopyMessage::Kind::kFile, .text = "c", .number = 9});
  files_->add("half");
  files_->discard();
  EXPECT_EQ(files_->bytes(), 3U);
  EXPECT_TRUE(fs::is_empty(staging()));
  EXPECT_EQ(files_->commit(false), 0);
  EXPECT_EQ(seen(), Names{"a=old"});
}

TEST_F(ReceivedFilesTest, AreRemovedWithTheirFolders) {
  open();
  receive("inner/a", "old");
  EXPECT_EQ(files_->commit(true), 0);
  receive("b", "new");
  files_->remove();
  EXPECT_EQ(files_->bytes(), 0U);
  EXPECT_EQ(files_->count(), 0U);
  EXPECT_TRUE(fs::is_empty(outer_.path()));
}

TEST_F(ReceivedFilesTest, StayWhenNobodyReceivesAnyMore) {
  open();
  receive("a", "text");
  EXPECT_EQ(files_->commit(true), 0);
  receive("b", "text");
  files_.reset();
  EXPECT_EQ(seen(), Names{"a=text"});
  EXPECT_FALSE(fs::exists(staging()));
}

TEST_F(ReceivedFilesTest, BeginWithoutWhatWasLeftBehind) {
  fs::create_directories(staging() + "/0");
  open();
  receive("a", "text");
  EXPECT_EQ(files_->commit(true), 0);
  EXPECT_EQ(seen(), Names{"a=text"});
}

TEST_F(ReceivedFilesTest, AreWhatTheyWereOnAFullDisk) {
  open();
  receive("a", "old");
  receive("b", "old");
  EXPECT_EQ(files_->commit(true), 0);
  {
    const FullDisk full(5);
    receive("a", std::string(100, 'x'));
  }
  receive("c", "new");
  EXPECT_EQ(files_->commit(false), EFBIG);
  EXPECT_EQ(seen(), (Names{"a=old", "b=old"})) << "no part of it is there";
  EXPECT_EQ(files_->bytes(), 6U);
  receive("a", "new");
  EXPECT_EQ(files_->commit(false), 0) << "an error is told once";
}

TEST_F(ReceivedFilesTest, AreWhatTheyWereOnAFullDiskWhereAllCome) {
  open();
  receive("a", "old");
  EXPECT_EQ(files_->commit(true), 0);
  {
    const FullDisk full(5);
    receive("a", std::string(100, 'x'));
  }
  EXPECT_EQ(files_->commit(true), EFBIG);
  EXPECT_EQ(seen(), Names{"a=old"});
}

TEST_F(ReceivedFilesTest, CannotBePutWhereAFileIsInPlaceOfTheirFolder) {
  fs::create_directory(folder());
  std::ofstream(fs::path(folder()) / "a") << "of this node";
  open(Existing::kStays);
  receive("c", "new");
  receive("a/b", "of the other");
  EXPECT_NE(files_->commit(false), 0);
  EXPECT_EQ(seen(), Names{"a=of this node"}) << "no part of it is there";
  EXPECT_EQ(files_->count(), 0U);
}

TEST_F(ReceivedFilesTest, AreGoneWhereOneCannotBePut) {
  open();
  receive("a", "old");
  EXPECT_EQ(files_->commit(true), 0);
  receive("b", "new");
  receive("a/c", "new");
  EXPECT_NE(files_->commit(false), 0);
  EXPECT_EQ(seen(), Names()) << "a part of it would be neither the old state nor the new one";
  EXPECT_EQ(files_->bytes(), 0U);
  receive("a", "newer");
  EXPECT_EQ(files_->commit(true), 0);
  EXPECT_EQ(seen(), Names{"a=newer"});
}

TEST_F(ReceivedFilesTest, AreNotPutWhereTheyAreGoneAgain) {
  open();
  receive("a", "text");
  receive("b", "text");
  files_->gone("a");
  EXPECT_EQ(files_->staged_bytes(), 4U);
  EXPECT_EQ(files_->commit(true), 0);
  EXPECT_EQ(seen(), Names{"b=text"});
}

TEST_F(ReceivedFilesTest, MayComeAgainAfterTheirRemoval) {
  open();
  receive("a", "text");
  EXPECT_EQ(files_->commit(true), 0);
  files_->remove();
  EXPECT_FALSE(fs::exists(folder()));
  receive("b", "text");
  EXPECT_EQ(files_->commit(true), 0);
  EXPECT_EQ(seen(), Names{"b=text"});
}

}  // namespace
}  // namespace lrun::launcher
