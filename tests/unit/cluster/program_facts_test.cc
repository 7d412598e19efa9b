#include "cluster/program_facts.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "support/temporary_folder.h"

namespace lrun::launcher {
namespace {

class LookAtProgram : public testing::Test {
 protected:
  [[nodiscard]] std::string make(const std::string& name, const std::string& text, mode_t mode) const {
    std::string path = directory_ + "/" + name;
    std::ofstream(path) << text;
    chmod(path.c_str(), mode);
    return path;
  }
  [[nodiscard]] ProgramFacts look(const std::string& program) const {
    return look_at_program(program, Environment({{"PATH", "/nonexistent:" + directory_}}));
  }

  const test::TemporaryFolder temporary_;
  const std::string directory_ = temporary_.path().string();
};

TEST_F(LookAtProgram, FindsANameOnThePath) {
  (void)make("train", "#!/bin/sh\n", 0755);
  EXPECT_EQ(look("train"), (ProgramFacts{true, "#!/bin/sh"}));
  EXPECT_EQ(look("trian"), (ProgramFacts{.there = false}));
}

TEST_F(LookAtProgram, ReadsTheFirstLineOfWhatIsNotExecutable) {
  const std::string script = make("train", "#!/usr/bin/env python3\r\nimport torch\n", 0644);
  EXPECT_EQ(look(script), (ProgramFacts{false, "#!/usr/bin/env python3"}));
}

TEST_F(LookAtProgram, HasNoFirstLineOfAMachinesProgram) {
  EXPECT_EQ(look(make("train", "\177ELF\nrest", 0755)), (ProgramFacts{true, ""}));
}

TEST_F(LookAtProgram, ReadsAtMostALinesWorthOfAHugeLine) {
  EXPECT_EQ(look(make("blob", std::string(100'000, 'x'), 0644)).first_line.size(), 256U);
}

TEST_F(LookAtProgram, SeesNothingInAFolderOrAMissingFile) {
  EXPECT_EQ(look(directory_), ProgramFacts());
  EXPECT_EQ(look(directory_ + "/missing"), (ProgramFacts{.there = false}));
}

TEST_F(LookAtProgram, DoesNotWaitForAPipesWriter) {
  const std::string pipe = directory_ + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0644), 0);
  EXPECT_EQ(look(pipe), ProgramFacts());
}

}  // namespace
}  // namespace lrun::launcher
