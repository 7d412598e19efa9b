
#include <gtest/gtest.h>

#include "unit/cli/parse_support.h"

namespace lrun::launcher {
namespace {

using Kind = EnvironmentChange::Kind;

TEST(SetupValues, RepeatedOptionsAllCount) {
  const WorkerSetup setup = request_of({"--env", "A=1", "--env=B=x y", "--unset", "C", "--env", "D", "p"}).setup;
  EXPECT_EQ(setup.environment, (std::vector<EnvironmentChange>{{Kind::kSet, "A", "1", Source::kFlag, "--env"},
                                                               {Kind::kSet, "B", "x y", Source::kFlag, "--env"},
                                                               {Kind::kPassOn, "D", "", Source::kFlag, "--env"},
                                                               {Kind::kUnset, "C", "", Source::kFlag, "--unset"}}));
}

TEST(SetupValues, OfTheFileAreJoinedByThoseOfTheLine) {
  const auto read = [](const std::string&) {
    return FileText{0, "rlimit = ['core=0', 'nofile=9']\nchdir = '/tmp'\n[env]\nA = 1\nB = 'b'\n"};
  };
  const WorkerSetup setup =
      parse_command_line({"lrun", "--env", "A=2", "--rlimit", "core=7", "p"}, Environment(), read).request.setup;
  EXPECT_EQ(setup.environment,
            (std::vector<EnvironmentChange>{{Kind::kSet, "A", "2", Source::kFlag, "--env"},
                                            {Kind::kSet, "B", "b", Source::kConfig, "lrun.toml:5: env"}}));
  ASSERT_EQ(setup.limits.size(), 2U);
  EXPECT_EQ(in_words(setup.limits[0]) + " " + in_words(setup.limits[1]), "core=7 nofile=9");
  EXPECT_EQ(setup.folder, (Setting<std::string>{"/tmp", Source::kConfig, "lrun.toml:2: chdir"}));
}

TEST(SetupValues, RefusalsSayWhatToTypeInstead) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
      {{"--env", "=1"},
       "lrun: error: '--env =1': the name of a variable is missing\nlrun: hint: for example '--env A=1'\n"},
      {{"--env", "A B=1"},
       "lrun: error: '--env A B=1': no name of a variable has blanks\nlrun: hint: one variable for each '--env'\n"},
      {{"--unset", "A=1"},
       "lrun: error: '--unset A=1': this is no name of a variable\nlrun: hint: write '--unset A'\n"},
      {{"--env", "RANK=1"},
       "lrun: error: '--env RANK=1': lrun itself gives 'RANK' to workers\n"
       "lrun: hint: lrun(1) lists those variables under 'Variables that a worker gets'\n"},
      {{"--env", "A=1", "--unset", "A"},
       "lrun: error: '--env A=1' and '--unset A' contradict each other\nlrun: hint: leave one of them out\n"},
      {{"--rlimit", "nofiles=1"},
       "lrun: error: '--rlimit nofiles=1': no such limit; allowed: as, core, cpu, data, fsize, locks, memlock, "
       "msgqueue, "
       "nice, nofile, nproc, rss, rtprio, rttime, sigpending, stack\nlrun: hint: did you mean 'nofile'?\n"},
      {{"--rlimit", "core"},
       "lrun: error: '--rlimit core': not a limit; allowed: NAME=SOFT or NAME=SOFT:HARD, numbers or 'unlimited', SOFT "
       "not above HARD\nlrun: hint: for example '--rlimit core=unlimited'\n"},
      {{"--rlimit", "nofile=many"},  // which Linux never gives without a bound
       "lrun: error: '--rlimit nofile=many': not a limit; allowed: NAME=SOFT or NAME=SOFT:HARD, numbers or "
       "'unlimited', SOFT not above HARD\nlrun: hint: for example '--rlimit nofile=65536'\n"},
      {{"--wrap", "a 'b"},
       "lrun: error: '--wrap a 'b': a quote is not closed, or a backslash protects nothing\n"
       "lrun: hint: quote as for a shell\n"},
      {{"--wrap@x", "a"},
       "lrun: error: '--wrap@x a': no ranks behind '@'\nlrun: hint: for example '--wrap@0' or '--wrap@0,2-3'\n"},
      {{"--chdir="},
       "lrun: error: '--chdir=': the name of a directory is missing\nlrun: hint: leave it out to stay here\n"},
      {{"--env@0", "A=1"}, "lrun: error: '--env' cannot be given for some ranks only\nlrun: hint: write '--env'\n"}};
  for (auto [words, message] : cases) {
    words.emplace_back("p");
    EXPECT_EQ(refusal(words), message);
  }
}

TEST(SetupValues, OfListsNoVariableIsRead) {
  const auto parsed = parse({"p"}, {{"LRUN_ENV", "A=1"}});
  EXPECT_TRUE(parsed.request.setup.environment.empty());
  EXPECT_EQ(parsed.warnings.size(), 1U) << "a list does not fit into a variable";
}

}  // namespace
}  // namespace lrun::launcher
