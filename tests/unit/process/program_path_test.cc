#include "process/program_path.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "support/temporary_folder.h"

namespace lrun {
namespace {

class FindProgram : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"first", "second"}) std::filesystem::create_directory(folder_ / name);
  }

  void make_file(const std::filesystem::path& path, mode_t mode) const {
    std::ofstream(folder_ / path) << "#!/bin/sh\n";
    ::chmod((folder_ / path).c_str(), mode);
  }
  [[nodiscard]] std::string search_path() const {
    return (folder_ / "first").string() + ":" + (folder_ / "second").string();
  }

  const test::TemporaryFolder temporary_;
  const std::filesystem::path folder_ = temporary_.path();
};

TEST_F(FindProgram, TakesTheFirstExecutableOnThePath) {
  make_file("first/tool", 0755);
  make_file("second/tool", 0755);
  EXPECT_EQ(find_program("tool", search_path()), (ProgramPath{(folder_ / "first/tool").string(), 0}));
}

TEST_F(FindProgram, PassesOverAFolderOfTheSameName) {
  std::filesystem::create_directory(folder_ / "first/tool");
  make_file("second/tool", 0755);
  EXPECT_EQ(find_program("tool", search_path()).path, (folder_ / "second/tool").string());
}

TEST_F(FindProgram, SaysThatAProgramIsNowhere) { EXPECT_EQ(find_program("tool", search_path()).error_number, ENOENT); }

TEST_F(FindProgram, SaysThatAProgramIsThereButNotExecutable) {
  make_file("second/tool", 0644);
  EXPECT_EQ(find_program("tool", search_path()).error_number, EACCES);
}

TEST_F(FindProgram, TakesANameWithASlashAsItIs) {
  make_file("first/tool", 0644);
  EXPECT_EQ(find_program((folder_ / "first/tool").string(), "").error_number, EACCES);
  EXPECT_EQ(find_program((folder_ / "first/none").string(), "").error_number, ENOENT);
  EXPECT_EQ(find_program((folder_ / "first/tool/x").string(), "").error_number, ENOENT) << "a file is no folder";
  EXPECT_EQ(find_program(folder_.string(), "").error_number, EISDIR);
}

TEST_F(FindProgram, TakesADotForTheFolder) {
  EXPECT_EQ(find_program(".", search_path()).error_number, EISDIR);
  EXPECT_EQ(find_program("..", search_path()).error_number, EISDIR);
}

TEST_F(FindProgram, ReadsTheInterpreterOfAScript) {
  const auto interpreter = [&](const std::string& text) {
    std::ofstream(folder_ / "script", std::ios::trunc) << text;
    return interpreter_of((folder_ / "script").string());
  };
  EXPECT_EQ(interpreter("#!/bin/sh\necho"), "/bin/sh");
  EXPECT_EQ(interpreter("#! /usr/bin/env python3\n"), "/usr/bin/env");
  EXPECT_EQ(interpreter("#!/bin/sh\r\n"), "/bin/sh\r");
  EXPECT_EQ(interpreter("#!/bin/sh"), "/bin/sh");
  EXPECT_EQ(interpreter("#!\n"), "");
  EXPECT_EQ(interpreter("\x7f"
                        "ELF"),
            "");
  EXPECT_EQ(interpreter(""), "");
}

TEST(FindProgramName, RefusesAnEmptyName) { EXPECT_EQ(find_program("", "/bin").error_number, ENOENT); }

}  // namespace
}  // namespace lrun
