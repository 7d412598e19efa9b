#include "copies/file_stream.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "copies/copy_message.h"
#include "support/log_test_support.h"
#include "support/temporary_folder.h"

namespace lrun::launcher {
namespace {

namespace fs = std::filesystem;
using Kind = CopyMessage::Kind;
using Names = std::vector<std::string>;
using Commit = FileStream::Commit;

std::string letters(std::size_t bytes) {
  std::string text(bytes, 'a');
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>('a' + i * i % 23);
  return text;
}

/// The other end of a stream.
struct Taken {
  std::map<std::string, std::string> files;  ///< that count
  Names invalid;
  Names gone;
  std::vector<bool> commits;  ///< whether nothing else is to be there
};

Taken taken_of(std::string_view bytes) {
  Taken taken;
  CopyDecoder decoder;
  CopyMessage file;
  std::string content;
  while (const auto item = decoder.next(bytes)) {
    if (const auto* const piece = std::get_if<CopyContent>(&*item)) content += piece->bytes;
    if (const auto* const message = std::get_if<CopyMessage>(&*item)) {
      if (message->kind == Kind::kFile) file = *message;
      if (message->kind == Kind::kGone) taken.gone.push_back(message->text);
      if (message->kind == Kind::kCommit) taken.commits.push_back(message->number != 0);
    }
    if (const auto* const end = std::get_if<CopyFileEnd>(&*item)) {
      EXPECT_EQ(content.size(), file.number) << file.text;
      if (end->is_valid) taken.files[file.text] = std::exchange(content, {});
      if (!end->is_valid) taken.invalid.push_back(file.text);
      content.clear();
    }
  }
  EXPECT_EQ(decoder.refusal(), "");
  EXPECT_EQ(bytes, "");
  return taken;
}

class FileStreamTest : public ::testing::Test {
 protected:
  /// An hour ago: the clock of a file system does not tell changes of one moment apart.
  void save(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    fs::last_write_time(folder_ / name, fs::file_time_type::clock::now() - std::chrono::hours(1));
  }
  [[nodiscard]] FileStream stream_of(const Names& names, Names gone = {}, Commit commit = Commit::kChanges) const {
    std::vector<OpenFile> files;
    for (const std::string& name : names) files.push_back(open_complete(folder_.path(), name));
    return {std::move(files), std::move(gone), commit};
  }
  /// All bytes; `between` is called after the first piece.
  static std::string bytes_of(FileStream& stream, const std::function<void()>& between = {}) {
    constexpr std::size_t kMostPiece = std::size_t{1} << 20U;
    std::string bytes;
    for (bool more = true, is_first = true; more; is_first = false) {
      const std::size_t before = bytes.size();
      more = stream.append_next(bytes);
      EXPECT_LT(bytes.size() - before, kMostPiece);
      if (is_first && between) between();
    }
    return bytes;
  }

  TemporaryFolder folder_;
};

TEST_F(FileStreamTest, GivesTheFilesAtItsOtherEnd) {
  const std::string large = letters(2'000'001);
  save("large", large);
  save("empty", "");
  save("small", "text");
  FileStream stream = stream_of({"empty", "large", "small"}, {"old", "older"});
  const Taken taken = taken_of(bytes_of(stream));
  EXPECT_EQ(taken.files, (std::map<std::string, std::string>{{"empty", ""}, {"large", large}, {"small", "text"}}));
  EXPECT_EQ(taken.gone, (Names{"old", "older"}));
  EXPECT_EQ(taken.invalid, Names());
  EXPECT_EQ(taken.commits, std::vector<bool>{false});
  EXPECT_EQ(stream.changed(), Names());
}

TEST_F(FileStreamTest, IsACommitWhereThereIsNothing) {
  FileStream stream = stream_of({}, {}, Commit::kAllFiles);
  const Taken taken = taken_of(bytes_of(stream));
  EXPECT_EQ(taken.commits, std::vector<bool>{true});
  EXPECT_TRUE(taken.files.empty());
}

TEST_F(FileStreamTest, HasTimesAndModes) {
  save("a", "text");
  FileStream stream = stream_of({"a"});
  std::string bytes;
  EXPECT_FALSE(stream.append_next(bytes));
  std::string_view left = bytes;
  const auto first = CopyDecoder().next(left);
  const OpenFile file = open_complete(folder_.path(), "a");
  const CopyMessage expected{
      .kind = Kind::kFile, .text = "a", .number = 4, .mode = file.mode, .time_ns = file.stamp.time_ns};
  ASSERT_TRUE(first);
  EXPECT_EQ(std::get<CopyMessage>(*first), expected);
}

TEST_F(FileStreamTest, DoesNotCountAFileThatShrinks) {
  save("a", letters(1'000'000));
  save("b", "text");
  FileStream stream = stream_of({"a", "b"});
  const Taken taken = taken_of(bytes_of(stream, [this] { fs::resize_file(folder_ / "a", 1000); }));
  EXPECT_EQ(taken.invalid, Names{"a"});
  EXPECT_EQ(taken.files, (std::map<std::string, std::string>{{"b", "text"}}));
  EXPECT_EQ(taken.commits, std::vector<bool>{false});
  EXPECT_EQ(stream.changed(), Names{"a"});
}

TEST_F(FileStreamTest, DoesNotCountAFileThatShrinksAndGrows) {
  save("a", letters(1'000'000));
  FileStream stream = stream_of({"a"});
  const Taken taken = taken_of(bytes_of(stream, [this] {
    fs::resize_file(folder_ / "a", 400'000);
    fs::resize_file(folder_ / "a", 1'000'000);
  }));
  EXPECT_EQ(taken.invalid, Names{"a"});
}

TEST_F(FileStreamTest, DoesNotCountAFileThatIsWrittenTo) {
  save("a", letters(1'000'000));
  FileStream stream = stream_of({"a"});
  const Taken taken =
      taken_of(bytes_of(stream, [this] { std::ofstream(folder_ / "a", std::ios::app) << letters(500'000); }));
  EXPECT_EQ(taken.invalid, Names{"a"});
  EXPECT_EQ(stream.changed(), Names{"a"});
}

TEST_F(FileStreamTest, CountsAFileWhoseNameAnotherHasGot) {
  const std::string large = letters(1'000'000);
  save("a", large);
  FileStream stream = stream_of({"a"});
  const Taken taken = taken_of(bytes_of(stream, [this] {
    save("b", "another");
    fs::rename(folder_ / "b", folder_ / "a");
  }));
  EXPECT_EQ(taken.files.at("a"), large);
}

}  // namespace
}  // namespace lrun::launcher
