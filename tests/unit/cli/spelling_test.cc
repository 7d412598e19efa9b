#include "cli/spelling.h"

#include <gtest/gtest.h>

#include "unit/cli/parse_support.h"

namespace lrun::launcher {
namespace {

using Words = std::vector<std::string>;

TEST(Spelling, DashAndUnderscoreAreTheSameLetterInEveryFlag) {
  for (const Flag& flag : flag_table()) {
    for (const std::string& name : long_names_of(flag)) {
      for (const char letter : {'-', '_'}) {
        std::string spelling = name;
        for (std::size_t i = 2; i < spelling.size(); ++i) {
          if (spelling[i] == '-' || spelling[i] == '_') spelling[i] = letter;
        }
        const SpelledLine line = spell_out({flag.value == ValueKind::kNone ? spelling : spelling + "=1", "./train"});
        ASSERT_EQ(line.options.size(), 1U) << spelling;
        EXPECT_EQ(line.options[0].flag, &flag) << spelling;
        EXPECT_EQ(line.options[0].origin, spelling);
        EXPECT_EQ(line.program, 1U) << spelling;
      }
    }
  }
}

TEST(Spelling, EqualsAndSpaceMeanTheSame) {
  for (const Words& words :
       {Words{"--nproc-per-node=3", "p"}, Words{"--nproc-per-node", "3", "p"}, Words{"-n3", "p"}, Words{"-n=3", "p"},
        Words{"-n", "3", "p"}, Words{"-np", "3", "p"}, Words{"-np=3", "p"}, Words{"-np3", "p"}}) {
    const LaunchRequest request = request_of(words);
    EXPECT_EQ(text_of(request.nproc_per_node.value), "3") << words.front();
    EXPECT_EQ(request.command, Words{"p"}) << words.front();
  }
}

TEST(Spelling, AUniqueBeginningIsEnoughAndItsOriginIsTheWholeName) {
  const LaunchRequest request = request_of({"--nproc-per-nod", "3", "p"});
  EXPECT_EQ(text_of(request.nproc_per_node.value), "3");
  EXPECT_EQ(request.nproc_per_node.origin, "--nproc-per-node");
  EXPECT_EQ(text_of(request_of({"--nproc_p=3", "p"}).nproc_per_node.value), "3");
  EXPECT_EQ(request_of({"--nn", "2", "p"}).num_nodes.value, 2);
  EXPECT_EQ(request_of({"--master-p=1", "p"}).master_port.value, 1);
  EXPECT_TRUE(request_of({"--virtual", "p"}).isolate_gpus);
}

TEST(Spelling, OneDashTooFewIsNotTakenForALetterAndItsValue) {
  EXPECT_THAT(refusal({"-nproc_per_node", "2", "p"}), mentions({"did you mean '--nproc_per_node'?"}));
  EXPECT_THAT(refusal({"-nproc_per_node=2", "p"}), mentions({"did you mean '--nproc_per_node=2'?"}));
  EXPECT_THAT(refusal({"-npernode", "2", "p"}), mentions({"did you mean '--nproc-per-node'?"}));
}

TEST(Spelling, AValueBehindASwitchIsNotProgram) {
  for (const char* const value : {"2", "true", "yes", "off"}) {
    EXPECT_THAT(refusal({"--timestamps", value, "train.py"}), mentions({"'--timestamps' takes no value", value}));
  }
  EXPECT_EQ(request_of({"--timestamps", "true"}).command, Words{"true"}) << "the program of that name";
}

TEST(Spelling, AWholeNamePrecedesLongerNamesThatBeginWithIt) {
  EXPECT_EQ(spell_out({"--timeout=1", "p"}).options[0].flag->name, "timeout");
  EXPECT_EQ(spell_out({"--host=a", "p"}).options[0].flag->name, "hosts");
}

TEST(Spelling, ShortOptionsGlueAndCombine) {
  const LaunchRequest request = request_of({"-mvn", "3", "-vv", "pkg"});
  EXPECT_TRUE(request.module);
  EXPECT_EQ(request.verbosity, 3);
  EXPECT_EQ(text_of(request.nproc_per_node.value), "3");
  EXPECT_EQ(request_of({"-mr0", "pkg"}).command, Words{"pkg"});
}

TEST(Spelling, ANegativeNumberIsAValueAndAnotherOptionIsNot) {
  EXPECT_EQ(text_of(request_of({"--devices", "-1", "p"}).devices.value), "-1");
  EXPECT_EQ(refusal({"--devices", "--strategy", "ddp", "p"}),
            "lrun: error: '--devices' needs a value\nlrun: hint: write '--devices N|LIST|auto|-1'\n");
  EXPECT_EQ(request_of({"--log-dir=-x", "p"}).log_dir.value, "-x") << "with '=' a value may begin with a dash";
}

TEST(Spelling, UnknownOptionsGetTheNearestName) {
  EXPECT_EQ(refusal({"--nproc-per-nood", "4", "./train"}),
            "lrun: error: unknown option '--nproc-per-nood'\nlrun: hint: did you mean '--nproc-per-node'?\n");
  EXPECT_EQ(refusal({"-devices", "4", "./train"}),
            "lrun: error: unknown option '-devices'\nlrun: hint: did you mean '--devices'?\n");
  EXPECT_THAT(refusal({"--bogus=1", "./train"}), mentions({"'--bogus'", "'lrun --help'", "'lrun PROGRAM --bogus'"}));
  EXPECT_THAT(refusal({"-4", "./train"}), mentions({"'-4'", "did you mean '-n 4'?"}));
  EXPECT_THAT(refusal({"-N", "2", "-n", "4", "./train"}),
              mentions({"did you mean '--num-nodes'? '-n' counts the workers of each node"}));
  EXPECT_THAT(refusal({"--ntasks=4", "./train"}), mentions({"'--nproc-per-node'? it counts the workers of each node"}));
  EXPECT_THAT(refusal({"--DEVICES=2", "./train"}), mentions({"did you mean '--devices'?"}));
}

TEST(Spelling, SeveralUnknownOptionsAreToldAtOnce) {
  EXPECT_EQ(refusal({"--devces", "2", "-n", "2", "--bogus=1", "-strategy", "ddp", "./train", "--lr"}),
            "lrun: error: unknown options '--devces', '--bogus' and '-strategy'\n"
            "lrun: hint: '--devces' and '-strategy': did you mean '--devices' and '--strategy'?\n");
  EXPECT_EQ(refusal({"--devces", "2", "--num-nods=2", "--devces=3", "./train"}),
            "lrun: error: unknown options '--devces' and '--num-nods'\n"
            "lrun: hint: did you mean '--devices' and '--num-nodes'?\n");
  EXPECT_EQ(refusal({"-N", "2", "--ntasks=4", "./train"}),
            "lrun: error: unknown options '-N' and '--ntasks'\n"
            "lrun: hint: did you mean '--num-nodes' and '--nproc-per-node'? '--nproc-per-node' counts the workers of "
            "each node\n");
  EXPECT_THAT(refusal({"--bogus", "--devces=2", "./train"}), mentions({"hint: '--bogus': options of PROGRAM stand"}));
  EXPECT_EQ(refusal({"--devces", "two", "--bogus", "./train"}),
            "lrun: error: unknown option '--devces'\nlrun: hint: did you mean '--devices'?\n")
      << "'two' may be PROGRAM";
  EXPECT_EQ(refusal({"--devces", "--devces", "--grace", "x"}),
            "lrun: error: unknown option '--devces'\nlrun: hint: did you mean '--devices'?\n");
}

TEST(Spelling, ANameOfOtherLaunchersIsNoBeginningExceptInTorchrunsLines) {
  EXPECT_EQ(refusal({"--local-rank", "0", "p"}),
            "lrun: error: unknown option '--local-rank'\n"
            "lrun: hint: leave it out: each worker finds its own in LOCAL_RANK and RANK\n");
  EXPECT_EQ(request_of({"--local-rank=0", "p"}, {}, "torchrun").output.local_ranks, std::vector<int>{0});
}

TEST(Spelling, AmbiguousBeginningsGetTheCandidates) {
  EXPECT_EQ(refusal({"--log", "d", "p"}),
            "lrun: error: ambiguous option '--log'\n"
            "lrun: hint: it could be '--log-dir', '--log-max-bytes', '--log-line-prefix-template' or '--logs-specs'\n");
  EXPECT_EQ(refusal({"--nproc", "2", "p"}), "(accepted)") << "two spellings of one flag are not ambiguous";
}

TEST(Spelling, SwitchesTakeNoValue) {
  EXPECT_EQ(refusal({"--no-python=yes", "p"}),
            "lrun: error: '--no-python' takes no value, got 'yes'\nlrun: hint: write only '--no-python'\n");
  EXPECT_FALSE(request_of({"--timestamps", "--timestamps=0", "p"}).output.timestamps) << "the last one counts";
  EXPECT_TRUE(request_of({"--timestamps=true", "p"}).output.timestamps);
  EXPECT_EQ(refusal({"-m=1", "p"}), "lrun: error: '-m' takes no value, got '1'\nlrun: hint: write only '-m'\n");
}

TEST(Spelling, AnOptionAndItsValueInQuotesAreSaidToBeTwoWords) {
  EXPECT_EQ(refusal({"--devices 2", "p"}),
            "lrun: error: unknown option '--devices 2'\n"
            "lrun: hint: an option and its value are two words: leave out the quotes around both\n");
}

TEST(Spelling, AMissingValueIsSaid) {
  EXPECT_EQ(refusal({"-n"}), "lrun: error: '-n' needs a value\nlrun: hint: write '-n N'\n");
}

}  // namespace
}  // namespace lrun::launcher
