// Every row of the flag table refuses what it cannot take with one line and one hint.
#include <gtest/gtest.h>

#include <algorithm>

#include "unit/cli/parse_support.h"

namespace lrun::launcher {
namespace {

/// Values of which every option finds at least one wrong, but those that take any text.
constexpr const char* kBadValues[] = {
    "", "nonsense", "-3", "0", "1.5", "auto,2", "1e3", "two,", "=", "'", "a b", "99999999999999999999", "5:1:x"};

bool takes_any_text(std::string_view name) {
  static const std::vector<std::string_view> names{
      "rdzv-id",     "role",      "signals-to-handle", "duplicate-stdout-filters", "duplicate-stderr-filters",
      "master-addr", "local-addr"};
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_error_and_hint(const std::string& text) {
  const std::size_t newline = text.find('\n');
  constexpr std::string_view kHint = "lrun: hint: ";
  return text.starts_with("lrun: error: ") && std::count(text.begin(), text.end(), '\n') == 2 &&
         text.compare(newline + 1, kHint.size(), kHint) == 0 && text.size() > newline + 1 + kHint.size() + 1;
}

TEST(EveryFlag, RefusesAWrongValueInTwoLines) {
  for (const Flag& flag : flag_table()) {
    if (flag.value == ValueKind::kNone || flag.action != FlagAction::kSetting) continue;
    int refused = 0;
    for (const std::string value : kBadValues) {
      const std::string said = refusal({"--" + std::string(flag.name) + "=" + value, "p"});
      if (said == "(accepted)") continue;
      ++refused;
      EXPECT_TRUE(is_error_and_hint(said)) << said;
    }
    EXPECT_EQ(refused == 0, takes_any_text(flag.name)) << flag.name;
  }
}

TEST(EveryFlag, RefusesAWrongValueOfAVariableInTwoLines) {
  for (const Flag& flag : flag_table()) {
    for (const std::string& variable : {lrun_variable_of(flag), torchrun_variable_of(flag)}) {
      if (variable.empty()) continue;
      for (const std::string value : kBadValues) {
        const std::string said = refusal({"p"}, {{variable, value}});
        EXPECT_TRUE(said == "(accepted)" || is_error_and_hint(said)) << said;
      }
    }
  }
}

TEST(EveryFlag, ThatIsASwitchRefusesAValueInTwoLines) {
  for (const Flag& flag : flag_table()) {
    if (flag.value != ValueKind::kNone) continue;
    const std::string said = refusal({"--" + std::string(flag.name) + "=x", "p"});
    EXPECT_TRUE(is_error_and_hint(said)) << said;
  }
}

TEST(EveryFlag, SaysWhatIsWrongFirst) {
  EXPECT_NE(refusal({"-n 2 train.py"}).find("leave out the quotes"), std::string::npos);
  EXPECT_EQ(refusal({"-n", "sh", "-c", "echo"}).substr(0, 47), "lrun: error: '-n sh': not a number of workers; ");
  EXPECT_EQ(refusal({"--devices", "./train", "--lr", "3"}).substr(0, 40), "lrun: error: '--devices' has no value: '");
  EXPECT_EQ(refusal({"-n", "2", "-c", "echo"}).substr(0, 35), "lrun: error: unknown option '-c'\nlr");
  EXPECT_EQ(refusal({"--verbos", "2", "true"}),
            "lrun: error: '--verbose' takes no value, got '2'\n"
            "lrun: hint: write only '--verbose'; the program of that name is '-- 2'\n");
  EXPECT_EQ(refusal({"--verbose", "--", "2"}), "(accepted)");
  EXPECT_EQ(refusal({"-n", "2", "2"}), "(accepted)");
}

TEST(EveryFlag, ThatIsOfSlurmOrOfAccelerateIsSaidToBe) {
  EXPECT_THAT(refusal({"--gres=gpu:2", "p"}), ::testing::HasSubstr("give it to sbatch, salloc or srun"));
  EXPECT_THAT(refusal({"--use_fsdp", "p"}), ::testing::HasSubstr("an argument of Accelerator()"));
}

TEST(EveryFlag, OfPythonOrADaemonIsAnsweredWithWhatToType) {
  EXPECT_THAT(refusal({"-u", "p"}), ::testing::HasSubstr("hint: leave it out"));
  EXPECT_THAT(refusal({"-W", "ignore", "p"}),
              ::testing::HasSubstr("'lrun [options] python3 [options of Python] PROGRAM'"));
  EXPECT_THAT(refusal({"--backend", "gloo", "p"}), ::testing::HasSubstr("init_process_group(\"gloo\")"));
  EXPECT_THAT(refusal({"--detach", "p"}), ::testing::HasSubstr("'nohup lrun ... &'"));
  EXPECT_THAT(refusal({"-genv", "A", "1", "p"}), ::testing::HasSubstr("'--env NAME=VALUE'"));
  EXPECT_THAT(refusal({"-n", "0,1", "p"}), ::testing::HasSubstr("'--devices 0,1' names the devices"));
}

TEST(EveryFlag, IsSuggestedForWhatOthersCallIt) {
  const std::vector<std::pair<std::string, std::string>> names{{"--gpus", "--devices"},
                                                               {"-ppn", "--nproc-per-node"},
                                                               {"--n", "-n"},
                                                               {"--local", "--standalone"},
                                                               {"--cpu", "--accelerator cpu"},
                                                               {"-N", "--num-nodes"},
                                                               {"-N2", "--num-nodes"},
                                                               {"--restarts", "--max-restarts"},
                                                               {"--restart", "--max-restarts"},
                                                               {"--port", "--master-port"},
                                                               {"-V", "--version"},
                                                               {"--status", "lrun status"},
                                                               {"--use_cpu", "--accelerator cpu"},
                                                               {"-g", "--devices"},
                                                               {"--num-workers", "--nproc-per-node"},
                                                               {"--min_np", "--num-nodes MIN:MAX"},
                                                               {"--output-filename", "--log-dir"},
                                                               {"--num_processes", "--nproc-per-node"}};
  for (const auto& [theirs, ours] : names) {
    EXPECT_THAT(refusal({theirs, "2", "p"}),
                mentions({"lrun: error: unknown option '" + theirs + "'\nlrun: hint: did you mean '" + ours + "'?"}));
  }
}

}  // namespace
}  // namespace lrun::launcher
