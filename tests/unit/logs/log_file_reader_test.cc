#include "logs/log_file_reader.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/temporary_folder.h"

namespace lrun::launcher {
namespace {

class LogFile : public ::testing::Test {
 protected:
  using Lines = std::vector<std::string>;

  void write(const std::string& text) const { std::ofstream(file(), std::ios::app) << text; }
  /// As RankLogFile does it.
  void turn() const { std::filesystem::rename(file(), file() + ".1"); }
  [[nodiscard]] std::string file() const { return folder_ / "stdout.log"; }

  static Lines read(LogFileReader& reader, bool to_its_end = true) {
    Lines lines;
    const auto keep = [&lines](std::string_view piece) { lines.emplace_back(piece); };
    reader.read(keep);
    if (to_its_end) reader.finish(keep);
    return lines;
  }
  [[nodiscard]] Lines last(std::uint64_t lines) const {
    LogFileReader reader(file());
    reader.skip_to_last(lines);
    return read(reader);
  }

 private:
  const test::TemporaryFolder folder_;
};

TEST_F(LogFile, IsReadInLinesAndThenOnlyWhatIsNew) {
  LogFileReader reader(file());
  EXPECT_EQ(read(reader, false), Lines()) << "there is none yet";
  write("one\ntw");
  EXPECT_EQ(read(reader, false), Lines{"one\n"}) << "a line is held back until it is whole";
  write("o\nthree");
  EXPECT_EQ(read(reader, false), Lines{"two\n"});
  EXPECT_EQ(read(reader), Lines{"three"});
}

TEST_F(LogFile, ThatWasRenamedIsReadToItsEndBeforeTheNextOne) {
  write("one\n");
  LogFileReader reader(file());
  EXPECT_EQ(read(reader), Lines{"one\n"});
  write("two\n");
  turn();
  write("three\n");
  EXPECT_EQ(read(reader), (Lines{"two\n", "three\n"}));
  turn();
  write("four\n");
  turn();
  write("five\n");
  EXPECT_EQ(read(reader), (Lines{"four\n", "five\n"})) << "twice since it was read";
  LogFileReader later(file());
  EXPECT_EQ(read(later), (Lines{"four\n", "five\n"}));
}

TEST_F(LogFile, HasLastLinesAlsoInTheRenamedOne) {
  write("one\ntwo\n");
  turn();
  write("three\nfour");
  EXPECT_EQ(last(0), Lines());
  EXPECT_EQ(last(1), Lines{"four"});
  EXPECT_EQ(last(2), (Lines{"three\n", "four"}));
  EXPECT_EQ(last(3), (Lines{"two\n", "three\n", "four"}));
  EXPECT_EQ(last(4), (Lines{"one\n", "two\n", "three\n", "four"}));
  EXPECT_EQ(last(9), last(4));
}

TEST_F(LogFile, HasLastLinesThatAreLongerThanAChunk) {
  const std::string longer(std::size_t{70} * 1024, 'x');
  write("one\n" + longer + "\n" + longer + "\n");
  LogFileReader reader(file());
  reader.skip_to_last(2);
  std::string all;
  reader.read([&all](std::string_view piece) { all += piece; });
  EXPECT_EQ(all.size(), 2 * (longer.size() + 1));
}

TEST_F(LogFile, IsNoPipe) {
  ASSERT_EQ(::mkfifo(file().c_str(), 0600), 0);
  LogFileReader reader(file());
  EXPECT_EQ(read(reader), Lines());
}

}  // namespace
}  // namespace lrun::launcher
