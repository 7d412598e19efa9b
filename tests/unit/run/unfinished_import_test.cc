#include "run/unfinished_import.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "support/temporary_folder.h"

namespace lrun::launcher {
namespace {

using namespace std::string_view_literals;

constexpr SteadyTime kSince(std::chrono::nanoseconds(12));

TEST(UnfinishedImports, AreATimeAModuleAndItsList) {
  EXPECT_EQ(parse_unfinished_import("12\0torch\0/list\0\0\0"sv), (UnfinishedImport{"torch", kSince, "/list"}));
  EXPECT_EQ(parse_unfinished_import("12\0torch\0\0torch.nn\0"sv), (UnfinishedImport{"torch", kSince, ""}));
}

TEST(UnfinishedImports, OfAnyOtherFormAreNone) {
  for (const std::string_view text : {""sv, "\0\0\0"sv, "12\0\0\0"sv, "12\0torch\0"sv, "12\0torch\0/list"sv,
                                      "x\0torch\0\0"sv, "99999999999999999999\0torch\0\0"sv}) {
    EXPECT_EQ(parse_unfinished_import(text), std::nullopt) << text;
  }
}

class ListOfModules : public ::testing::Test {
 protected:
  [[nodiscard]] std::string text() const {
    std::ifstream file(list_);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  TemporaryFolder folder_;
  const std::string list_ = (folder_.path() / "list").string();
};

TEST_F(ListOfModules, SaysWhatTheNextRunLeavesOut) {
  std::ofstream(list_) << "slow\t/slow.py\n";
  EXPECT_EQ(leave_out({"slow", kSince, list_}), "; the next run leaves 'slow' out");
  EXPECT_EQ(text(), "slow\t/slow.py\n!slow\n");
}

TEST_F(ListOfModules, StaysWhereTheUserNamedTheModule) { EXPECT_EQ(leave_out({"slow", kSince, ""}), ""); }

TEST_F(ListOfModules, IsAFileOfThisUserAlone) {
  EXPECT_EQ(leave_out({"slow", kSince, list_}), "") << "there is no list";
  EXPECT_FALSE(std::filesystem::exists(list_));
  const std::string other = list_ + ".other";
  std::ofstream(other) << "text\n";
  std::filesystem::create_symlink(other, list_);
  EXPECT_EQ(leave_out({"slow", kSince, list_}), "") << "a link";
  EXPECT_EQ(leave_out({"slow", kSince, folder_.path().string()}), "") << "a folder";
  if (::geteuid() == 0 && ::chown(other.c_str(), 65534, 65534) == 0) {
    EXPECT_EQ(leave_out({"slow", kSince, other}), "") << "another user's";
  }
}

TEST_F(ListOfModules, LeavesOutWhatTookMostOfALongTime) {
  using namespace std::chrono_literals;
  const UnfinishedImport slow{"slow", kSince, list_};
  EXPECT_EQ(why_late(std::nullopt, Duration(5min), kSince + 5min), "not imported within 5m");
  std::ofstream(list_) << "slow\t/slow.py\n";
  EXPECT_EQ(why_late(slow, Duration(5min), kSince + 2min), "'slow' is not imported within 5m");
  EXPECT_EQ(why_late(slow, Duration(10s), kSince + 9s), "'slow' is not imported within 10s");
  EXPECT_EQ(text(), "slow\t/slow.py\n");
  EXPECT_EQ(why_late(slow, Duration(5min), kSince + 3min),
            "'slow' is not imported within 5m; the next run leaves 'slow' out");
  EXPECT_EQ(text(), "slow\t/slow.py\n!slow\n");
}

}  // namespace
}  // namespace lrun::launcher
