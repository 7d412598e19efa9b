// What would go wrong without a word: each is told once, with what to type.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "support/lrun_process.h"

namespace lrun::test {
namespace {

/// A Python script in a folder of its own, from which lrun is started.
class Script {
 public:
  explicit Script(const std::string& text) { std::ofstream(folder_.path() / "train.py") << text; }

  [[nodiscard]] LrunProcess::Options options() const {
    return {.before_exec = [path = folder_.path().string()] { (void)!::chdir(path.c_str()); }};
  }

 private:
  TemporaryFolder folder_;
};

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(StrategyOfLiblrun, OfAPythonProgramIsRefusedBeforeAnythingStarts) {
  const Script script("open('started', 'w')\n");
  LrunProcess lrun({"--devices", "2", "--strategy", "dp", "train.py"}, script.options());
  EXPECT_EQ(lrun.wait().code, 125);
  EXPECT_EQ(
      lrun.err(),
      "lrun: error: '--strategy dp' is carried out by liblrun, and 'train.py' is a Python program: it would train "
      "on one device\n"
      "lrun: hint: use '--strategy ddp' and DistributedDataParallel, or '--liblrun' for one that starts a program "
      "of liblrun\n");
  LrunProcess again({"--devices", "2", "--strategy", "dp", "--liblrun", "train.py"}, script.options());
  EXPECT_EQ(again.wait().code, 0) << again.err();
  EXPECT_EQ(again.err(), "");
}

TEST(StrategyOfLiblrun, OfAPythonProgramIsRefusedBeforeOtherHostsAreReached) {
  LrunProcess lrun({"-H", "h1:2,h2:2", "--ssh", "/nonexistent", "--strategy", "ddp2", "train.py"});
  EXPECT_EQ(lrun.wait().code, 125);
  EXPECT_EQ(count_of(lrun.err(), "\n"), 2U) << lrun.err();
  EXPECT_NE(lrun.err().find("it would train on one device of each node"), std::string::npos) << lrun.err();
}

TEST(StrategyOfLiblrun, ThatNobodyCarriedOutIsTold) {
  LrunProcess lrun({"--devices", "2", "--strategy", "ddp_sharded", "sh", "-c", ":"});
  EXPECT_EQ(lrun.wait().code, 0);
  EXPECT_EQ(
      lrun.err(),
      "lrun: warning: '--strategy ddp_sharded' is carried out by liblrun, and no step of it was seen: the program "
      "may have trained without sharding; with '--liblrun' nobody looks\n");
  LrunProcess failed({"--devices", "2", "--strategy", "ddp_sharded", "false"});
  EXPECT_EQ(failed.wait().code, 1);
  EXPECT_EQ(failed.err().find("no step of it"), std::string::npos) << failed.err();
}

}  // namespace
}  // namespace lrun::test
