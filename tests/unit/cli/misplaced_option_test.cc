#include "cli/misplaced_option.h"

#include <gtest/gtest.h>

#include <map>

#include "unit/cli/parse_support.h"

namespace lrun::launcher {
namespace {

using Files = std::map<std::string, std::string>;

ReadProgram reader_of(const Files& files) {
  return [files](const std::string& path) {
    const auto file = files.find(path);
    return file == files.end() ? std::nullopt : std::optional(file->second);
  };
}

const ProgramFacts kNative{true, ""};

/// The warning for `lrun words...` if the run has one worker.
std::string warning(const std::vector<std::string>& words, const Files& files, const ProgramFacts& program = {},
                    int world_size = 1, DeviceKind accelerator = DeviceKind::kCpu) {
  LaunchPlan plan;
  plan.world_size = world_size;
  plan.accelerator.value = accelerator;
  return warn_about_misplaced_option(plan, parse(words).request, program, reader_of(files));
}

const Files kPlain{{"train.py", "import torch\nnum_devices = 1\n"}, {"./train", "\177ELF num_devices "}};

TEST(MisplacedOption, IsToldWithWhatToType) {
  EXPECT_THAT(warning({"train.py", "--devices", "4"}, kPlain),
              mentions({"'--devices 4'", "'train.py'", "'lrun --devices 4 train.py …'"}));
  EXPECT_THAT(warning({"-m", "train", "--lr", "1", "--nproc_per_node=2"}, kPlain),
              mentions({"'--nproc_per_node 2'", "'train.py'", "'lrun --nproc_per_node 2 -m train …'"}));
  EXPECT_THAT(warning({"python3", "-u", "train.py", "-np", "4"}, kPlain, kNative),
              mentions({"'-np 4'", "'train.py'", "'lrun -np 4 python3 …'"}));
  EXPECT_THAT(warning({"train.py", "-n", "4"}, kPlain), mentions({"'-n 4'", "'lrun -n 4 train.py …'"}));
  EXPECT_NE(warning({"./train", "--nnodes", "2"}, kPlain, kNative), "");
  EXPECT_NE(warning({"./train", "--nnodes=1:2"}, kPlain, kNative), "");
}

TEST(MisplacedOption, ThatTheProgramRefusesIsHintedAt) {
  FailureRecord record;
  record.ending = FailureRecord::Ending::kExited;
  record.error = "a.py: error: unrecognized arguments: --log-dir x";
  const std::vector<std::string> argv{"python3", "-u", "a.py", "--log-dir", "x"};
  EXPECT_EQ(hint_about_refused_option(record, "a.py", argv),
            "for lrun's own '--log-dir' write it before PROGRAM: 'lrun --log-dir … a.py'");
  EXPECT_EQ(hint_about_refused_option(record, "a.py", {"a.py", "--log"}), "");
  record.error = "cannot write to --log-dir x";
  EXPECT_EQ(hint_about_refused_option(record, "a.py", argv), "") << "the program has the option";
  record.error.clear();
  record.evidence = {"Error: No such option: --log-dir"};
  EXPECT_NE(hint_about_refused_option(record, "a.py", argv), "");
  record.evidence = {"unknown option --log-dirs"};
  EXPECT_EQ(hint_about_refused_option(record, "a.py", argv), "") << "another option";
  record.evidence = {"a.py: error: unrecognized arguments: -n 4"};
  EXPECT_EQ(hint_about_refused_option(record, "a.py", {"a.py", "-n", "4"}),
            "for lrun's own '-n' write it before PROGRAM: 'lrun -n … a.py'");
  EXPECT_EQ(hint_about_refused_option(record, "a.py", {"a.py", "-", "4"}), "");
  const std::vector<std::string> of_both{"a.py", "-n", "4", "--top-n", "5"};
  record.evidence = {"a.py: error: unrecognized arguments: --top-n 5"};
  EXPECT_EQ(hint_about_refused_option(record, "a.py", of_both), "") << "the end of another option";
  record.evidence = {"a.py: error: unrecognized arguments: --top-n 5 -n 4"};
  EXPECT_NE(hint_about_refused_option(record, "a.py", of_both), "");
}

TEST(MisplacedOption, IsFineInARunOfSeveralWorkersOrOfAGivenNumber) {
  const std::vector<std::string> line{"train.py", "--devices", "4"};
  EXPECT_EQ(warning(line, kPlain, {}, 4), "") << "a manager says how many";
  for (const char* const option : {"--devices=1", "-n1", "--num_nodes=1"}) {
    EXPECT_EQ(warning({option, "train.py", "--devices", "4"}, kPlain), "") << option;
  }
  EXPECT_NE(warning({"--grace=3", "--strategy=ddp", "train.py", "--devices", "4"}, kPlain), "");
}

TEST(MisplacedOption, ThatOnlyLaunchersHaveIsToldInAnyRun) {
  EXPECT_EQ(warning({"--devices", "2", "train.py", "--max-restarts", "3"}, kPlain, {}, 2),
            "'--max-restarts 3' is an argument of 'train.py', not of lrun; for lrun, write 'lrun --max-restarts 3 "
            "train.py …'");
  EXPECT_NE(warning({"train.py", "--rdzv_endpoint=h:1"}, kPlain), "");
  EXPECT_EQ(warning({"train.py", "--max-restarts", "3"}, {{"train.py", "add_argument('--max_restarts')\n"}}), "");
  EXPECT_EQ(warning({"train.sh", "--max-restarts", "3"}, {{"train.sh", "exec train \"$@\"\n"}}), "");
}

TEST(MisplacedOption, IsFineWhereItAsksForNoMoreWorkers) {
  for (const char* const words : {"--devices=1", "--devices=all", "--devices", "--device=4", "--gpus=4",
                                  "--devices=auto", "--devices=0,1", "--strategy=ddp", "devices=4"}) {
    EXPECT_EQ(warning({"train.py", words}, kPlain), "") << words;
  }
  EXPECT_NE(warning({"train.py", "--devices=0,1"}, kPlain, {}, 1, DeviceKind::kGpu), "");
  EXPECT_EQ(warning({"train.py", "--", "--devices", "4"}, kPlain), "") << "it is what the program passes on";
}

TEST(MisplacedOption, IsFineWhereTheProgramMayKnowIt) {
  const Files files{{"argparse.py", "parser.add_argument('--devices', type=int)"},
                    {"click.py", "@click.option(\"--num-gpus\")"},
                    {"fire_.py", "def main(num_gpus=1): pass"},
                    {"lightning.py", "cli = LightningCLI(Model)"},
                    {"./options", "\177ELF devices "},
                    {"./script", "#!/bin/sh\nexec ./train"}};
  for (const char* const script : {"argparse.py", "lightning.py", "./options"}) {
    EXPECT_EQ(warning({script, "--devices", "4"}, files, kNative), "") << script;
  }
  EXPECT_EQ(warning({"letter.py", "-n", "4"}, {{"letter.py", "add_argument('-n')"}}), "");
  for (const char* const script : {"click.py", "fire_.py"}) {
    EXPECT_EQ(warning({script, "--num-gpus", "4"}, files), "") << script;
    EXPECT_EQ(warning({script, "--num_gpus", "4"}, files), "") << script;
  }
  EXPECT_EQ(warning({"missing.py", "--devices", "4"}, files), "") << "it may come from elsewhere";
  EXPECT_EQ(warning({"./script", "--devices", "4"}, files, {true, "#!/bin/sh"}), "") << "it may pass them on";
  EXPECT_EQ(warning({"torchrun", "--nproc-per-node", "4"}, files, {true, "#!/usr/bin/python3"}), "");
  EXPECT_EQ(warning({"python3", "-c", "pass", "--devices", "4"}, files, kNative), "");
}

TEST(ScriptLacksWord, LooksIntoTheModulesThatItImportsFromItsFolder) {
  const Files files{{"a/train.py", "import os, options\n"},
                    {"a/options.py", "from .parts import (flags,  # all of them\n"},
                    {"a/parts/flags.py", "from ..more.last import x"},
                    {"a/parts/__init__.py", ""},
                    {"a/parts/../more/last.py", "devices = 4"},
                    {"a/alone.py", "from options_of_others import devices_"},
                    {"a/loop.py", "import loop"}};
  EXPECT_FALSE(script_lacks_word("a/train.py", "devices", reader_of(files)));
  EXPECT_TRUE(script_lacks_word("a/train.py", "nodes", reader_of(files)));
  EXPECT_TRUE(script_lacks_word("a/alone.py", "devices", reader_of(files)));
  EXPECT_TRUE(script_lacks_word("a/loop.py", "devices", reader_of(files)));
  EXPECT_FALSE(script_lacks_word("a/none.py", "devices", reader_of(files)));
}

TEST(ScriptLacksWord, GivesUpAtAProgramOfManyFiles) {
  int asked = 0;
  const auto read = [&asked](const std::string&) { return std::optional("import m" + std::to_string(++asked)); };
  EXPECT_FALSE(script_lacks_word("train.py", "devices", read));
  EXPECT_LE(asked, 200);
}

}  // namespace
}  // namespace lrun::launcher
