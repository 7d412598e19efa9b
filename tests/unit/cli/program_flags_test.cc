#include <gtest/gtest.h>

#include "unit/cli/parse_support.h"

namespace lrun::launcher {
namespace {

using Kind = EnvironmentChange::Kind;

TEST(ProgramFlags, RepeatedOptionsAllCount) {
  const WorkerSetup setup = request_of({"--env", "A=1", "--env=B=x y", "--unset", "C", "--env", "D", "p"}).setup;
  EXPECT_EQ(setup.environment, (std::vector<EnvironmentChange>{{Kind::kSet, "A", "1", Source::kFlag, "--env"},
                                                               {Kind::kSet, "B", "x y", Source::kFlag, "--env"},
                                                               {Kind::kPassOn, "D", "", Source::kFlag, "--env"},
                                                               {Kind::kUnset, "C", "", Source::kFlag, "--unset"}}));
}

TEST(ProgramFlags, OfTheFileAreJoinedByThoseOfTheLine) {
  const auto read = [](const std::string&) {
    return FileText{0, "rlimit = ['core=0', 'nofile=9']\nchdir = '/tmp'\n[env]\nA = 1\nB = 'b'\n"};
  };
  const WorkerSetup setup =
      parse_command_line({"lrun", "--env", "A=2", "--rlimit", "core=7", "p"}, Environment(), read).request.setup;
  EXPECT_EQ(setup.environment,
            (std::vector<EnvironmentChange>{{Kind::kSet, "A", "2", Source::kFlag, "--env"},
                                            {Kind::kSet, "B", "b", Source::kConfig, "lrun.toml:5: env"}}));
  ASSERT_EQ(setup.limits.size(), 2U);
  EXPECT_EQ(text_of(setup.limits[0]) + " " + text_of(setup.limits[1]), "core=7 nofile=9");
  EXPECT_EQ(setup.folder, (Setting<std::string>{"/tmp", Source::kConfig, "lrun.toml:2: chdir"}));
}

TEST(ProgramFlags, RefusalsSayWhatToTypeInstead) {
  const std::vector<std::pair<std::vector<std::string>, Facts>> cases{
      {{"--env", "=1"}, {"'--env =1'", "'--env A=1'"}},
      {{"--env", "A B=1"}, {"'--env A B=1'", "'--env'"}},
      {{"--env", "A = x y"}, {"'--env A = x y'", "write '--env A=x y'"}},
      {{"--unset", "A=1"}, {"'--unset A=1'", "'--unset A'"}},
      {{"--env", "RANK=1"}, {"'--env RANK=1'", "'RANK'", "1", "'Variables that a worker gets'"}},
      {{"--env", "A=1", "--unset", "A"}, {"'--env A=1'", "'--unset A'"}},
      {{"--rlimit", "nofiles=1"},
       {"'--rlimit nofiles=1'",
        "allowed: as, core, cpu, data, fsize, locks, memlock, msgqueue, nice, nofile, nproc, rss, rtprio, rttime, "
        "sigpending, stack",
        "'nofile'"}},
      {{"--rlimit", "core"},
       {"'--rlimit core'", "allowed: NAME=SOFT or NAME=SOFT:HARD, numbers or 'unlimited', SOFT not above HARD",
        "'--rlimit core=unlimited'"}},
      {{"--rlimit", "nofile=many"},
       {"'--rlimit nofile=many'", "allowed: NAME=SOFT or NAME=SOFT:HARD, numbers or 'unlimited', SOFT not above HARD",
        "'--rlimit nofile=65536'"}},
      {{"--wrap", "a 'b"}, {"--wrap", "'b'"}},
      {{"--wrap@x", "a"}, {"'--wrap@x a'", "'@'", "'--wrap@0'", "'--wrap@0,2-3'"}},
      {{"--chdir="}, {"'--chdir='"}},
      {{"--preload="}, {"'--preload='", "names of Python modules", "'--preload torch,torch.optim'"}},
      {{"--preload", "torch,"}, {"'--preload torch,'", "'--preload torch,torch.optim'"}},
      {{"--preload", "train.py"}, {"'--preload train.py'", "'--preload torch,torch.optim'"}},
      {{"--memory-dir="}, {"'--memory-dir='", "not a size", "'--memory-dir 8G'"}},
      {{"--memory-dir", "8X"}, {"'--memory-dir 8X'", "K, M, G or T", "'--memory-dir 8G'"}},
      {{"--memory-dir", "-1"}, {"'--memory-dir -1'", "not a size"}},
      {{"--env@0", "A=1"}, {"'--env'"}}};
  for (auto [words, facts] : cases) {
    words.emplace_back("p");
    EXPECT_THAT(refusal(words), HasFacts(facts));
  }
}

TEST(ProgramFlags, LimitTheMemoryFolder) {
  const auto bytes_of = [](const std::string& size) {
    return parse({"--memory-dir", size, "p"}).request.setup.memory.value.bytes;
  };
  EXPECT_EQ(parse({"p"}).request.setup.memory.value.bytes, std::nullopt);
  EXPECT_EQ(bytes_of("0"), 0U);
  EXPECT_EQ(bytes_of("8g"), 8ULL << 30);
  EXPECT_EQ(bytes_of("2T"), 2ULL << 40);
  EXPECT_EQ(bytes_of("unlimited"), ~0ULL);
}

TEST(ProgramFlags, OfListsNoVariableIsRead) {
  const auto parsed = parse({"p"}, {{"LRUN_ENV", "A=1"}});
  EXPECT_TRUE(parsed.request.setup.environment.empty());
  EXPECT_EQ(parsed.warnings.size(), 1U) << "a list does not fit into a variable";
}

TEST(ProgramFlags, NameTheNearestPersonality) {
  expect_refused({
      {"--compat=torchrunn",
       {"'--compat torchrunn'", "allowed: lrun, torchrun, torch.distributed.launch", "'torchrun'"}},
  });
}

}  // namespace
}  // namespace lrun::launcher
