#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "support/lrun_process.h"
#include "support/temporary_folder.h"

namespace lrun::test {

inline std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

/// Of lrun's messages: one about --preload, other than that its imports take long on a busy machine.
MATCHER(HasPreloadTrouble, "") {
  std::istringstream lines(arg);
  for (std::string line; std::getline(lines, line);) {
    const auto says = [&line](const char* part) { return line.find(part) != std::string::npos; };
    if (says("--preload") && !says("still waiting for the imports")) return true;
  }
  return false;
}

/// A folder with Python files, and lrun that runs them.
class Preload : public ::testing::Test {
 protected:
  Preload() {
    if (std::getenv("LRUN_NO_PIDFD") != nullptr) skip_ = "a fork server needs pidfds";
    write("counted.py", "import os\nopen(os.path.join(os.path.dirname(__file__), 'imports'), 'a').write('x')\n");
  }
  void SetUp() override {
    if (skip_ != nullptr) GTEST_SKIP() << skip_;
  }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_.path() / name) << text;
    return (folder_.path() / name).string();
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    std::ifstream in(folder_.path() / name);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  /// How often counted.py was imported.
  [[nodiscard]] std::size_t imports() const { return read("imports").size(); }

  struct Ended {
    int code = -1;
    std::string out;
    std::string err;
  };
  /// Runs to the end, with the arguments in front of PROGRAM.
  static Ended run(std::vector<std::string> arguments, const std::vector<std::string>& program,
                   const LrunProcess::Options& options = {}) {
    arguments.insert(arguments.end(), program.begin(), program.end());
    LrunProcess lrun(std::move(arguments), options);
    const LrunEnd end = lrun.wait();
    return {end.exited ? end.code : 128 + end.signal_number, lrun.out(), lrun.err()};
  }

  /// Both ways end alike and print the same.
  static void expect_equal(const std::vector<std::string>& program, const LrunProcess::Options& options = {}) {
    const Ended plain = run({"-n", "1"}, program, options);
    const Ended forked = run({"-n", "1", "--preload", "json,decimal"}, program, options);
    EXPECT_EQ(forked.code, plain.code);
    EXPECT_EQ(forked.out, plain.out);
    EXPECT_EQ(without_times(forked.err), without_times(plain.err));
  }

  TemporaryFolder folder_;

 private:
  /// Without the lines that differ from run to run: times, and a note on a busy machine.
  static std::string without_times(const std::string& text) {
    std::string rest;
    std::size_t at = 0;
    while (at < text.size()) {
      const std::size_t end = std::min(text.find('\n', at), text.size() - 1);
      const std::string line = text.substr(at, end + 1 - at);
      const bool differs =
          line.find(" ran for ") != std::string::npos || line.find("still waiting") != std::string::npos;
      if (!differs) rest += line;
      at = end + 1;
    }
    return rest;
  }

  const char* skip_ = nullptr;
};

}  // namespace lrun::test
