#include <gtest/gtest.h>

#include "unit/cli/parse_support.h"

namespace lrun::launcher {
namespace {

using Action = ParsedCommandLine::Action;
using Words = std::vector<std::string>;

TEST(CommandLine, WithoutOptionsHasTheDefaults) {
  LaunchRequest defaults;
  defaults.command = {"./train"};
  EXPECT_EQ(request_of({"./train"}), defaults);
}

TEST(CommandLine, PutsEveryFlagIntoTheRequestWithItsOrigin) {
  LaunchRequest expected;
  expected.command = {"train.py", "--lr", "3"};
  expected.devices = by_flag(DeviceRequest{DeviceRequest::Kind::kList, 0, {"2", "3"}}, "--devices");
  expected.num_nodes = by_flag(4, "--num-nodes");
  expected.strategy = by_flag<std::optional<Strategy>>(Strategy::kDdp2, "--strategy");
  expected.accelerator = by_flag<std::optional<DeviceKind>>(DeviceKind::kGpu, "--accelerator");
  expected.accelerator_word = "cuda";
  expected.process_group_backend = by_flag<std::optional<GroupBackend>>(GroupBackend::kNccl, "--process_group_backend");
  expected.seed = by_flag<std::optional<std::uint64_t>>(18446744073709551615ULL, "--seed");
  expected.master_port = by_flag<std::optional<int>>(29500, "--master_port");
  expected.log_dir = by_flag<std::string>("[a,b] c", "--log-dir");
  expected.grace = by_flag(Duration(1500), "--grace");
  expected.settle = by_flag(Duration(100), "--settle");
  expected.timeout = by_flag(Duration(7'200'000), "--timeout");
  expected.start_timeout = by_flag(Duration(60'000), "--start-timeout");
  expected.signals_to_handle = by_flag<std::string>("TERM,USR1", "--signals-to-handle");
  expected.max_restarts = by_flag(3, "--max-restarts");
  expected.restart_backoff = by_flag<std::optional<Duration>>(Duration(2000), "--restart-backoff");
  expected.compat = Compat::kTorchrun;
  expected.isolate_gpus = true;
  expected.no_python = true;
  expected.dry_run = DryRun::kJson;
  expected.verbosity = 2;
  EXPECT_EQ(request_of({"--devices",
                        "2,3",
                        "--num-nodes=4",
                        "--strategy=DDP2",
                        "--accelerator",
                        "cuda",
                        "--process_group_backend",
                        "nccl",
                        "--seed",
                        "18446744073709551615",
                        "--master_port",
                        "29500",
                        "--log-dir",
                        "[a,b] c",
                        "--grace",
                        "1.5s",
                        "--settle=100ms",
                        "--timeout=2h",
                        "--start-timeout=60",
                        "--signals-to-handle=TERM,USR1",
                        "--max-restarts=3",
                        "--restart-backoff=2",
                        "--compat=torchrun",
                        "--virtual-local-rank",
                        "--no-python",
                        "--dry-run=json",
                        "-vv",
                        "train.py",
                        "--lr",
                        "3"}),
            expected);
}

TEST(CommandLine, TheLastValueWinsInAnySpelling) {
  const LaunchRequest request = request_of({"--nproc-per-node=3", "--nproc_per_node=2", "-n", "5", "p"});
  EXPECT_EQ(request.nproc_per_node, by_flag(DeviceRequest{DeviceRequest::Kind::kProcesses, 5}, "-n"));
}

TEST(CommandLine, StopsAtTheProgram) {
  const Words command{"./train", "--devices", "9", "--bogus", "-n", "--", "-h", "", "[x]", "a=b", "--", "naïve ✓"};
  Words words{"--devices", "2"};
  words.insert(words.end(), command.begin(), command.end());
  const LaunchRequest request = request_of(words);
  EXPECT_EQ(text_of(request.devices.value), "2");
  EXPECT_EQ(request.command, command);
}

TEST(CommandLine, ADoubleDashEndsTheOptions) {
  EXPECT_EQ(request_of({"-n", "2", "--", "-odd-name", "a"}).command, (Words{"-odd-name", "a"}));
  EXPECT_EQ(request_of({"--", "s.py", "a"}).command, (Words{"s.py", "a"}));
  EXPECT_EQ(request_of({"--", "s.py", "--", "--", "a"}).command, (Words{"s.py", "--", "--", "a"}));
  EXPECT_EQ(request_of({"-m", "--", "pkg", "--x"}).command, (Words{"pkg", "--x"}));
  EXPECT_EQ(request_of({"--", "--", "x"}).command, (Words{"--", "x"}));
}

TEST(CommandLine, OnlyTorchrunDropsADoubleDashAfterTheScript) {
  const Words words{"s.py", "--", "a"};
  EXPECT_EQ(request_of(words).command, words);
  EXPECT_EQ(request_of(words, {}, "/usr/bin/torchrun").command, (Words{"s.py", "a"}));
  EXPECT_EQ(request_of({"s.py", "a", "--", "b"}, {}, "torchrun").command, (Words{"s.py", "a", "--", "b"}));
  EXPECT_EQ(request_of({"--", "s.py", "--", "--", "a"}, {}, "torchrun").command, (Words{"s.py", "--", "--", "a"}));
}

TEST(CommandLine, ALinkNamedTorchrunMeansItsDefaults) {
  EXPECT_EQ(request_of({"p"}, {}, "/opt/bin/torchrun").compat, Compat::kTorchrun);
  EXPECT_EQ(request_of({"--compat=lrun", "p"}, {}, "torchrun").compat, Compat::kLrun) << "a flag beats the name";
  EXPECT_EQ(request_of({"p"}, {}, "/opt/torchrun/lrun").compat, Compat::kLrun);
  EXPECT_EQ(request_of({"p"}, {{"LRUN_COMPAT", "torchrun"}}).compat, Compat::kTorchrun);
  const LaunchRequest old = request_of({"--compat=torch.distributed.launch", "--use_env", "p"});
  EXPECT_TRUE(old.compat == Compat::kTorchrun && old.is_old_launch && old.use_env);
  EXPECT_FALSE(request_of({"--compat=torchrun", "p"}, {{"LRUN_COMPAT", "torch.distributed.launch"}}).is_old_launch);
}

TEST(CommandLine, SaysThatAPythonProgramIsOfLiblrun) {
  EXPECT_TRUE(request_of({"--liblrun", "wrapper.py"}).of_liblrun);
  EXPECT_TRUE(request_of({"wrapper.py"}, {{"LRUN_LIBLRUN", "1"}}).of_liblrun);
}

TEST(CommandLine, TellsOfAnOptionThatWasGivenTwiceAndDiffers) {
  const ParsedCommandLine twice = parse({"--devices", "2", "--grace=1", "--num_gpus=3", "--grace=2s", "p"});
  EXPECT_EQ(twice.warnings, (Words{"'--devices 2' and '--num_gpus 3' are both given: the last one counts",
                                   "'--grace 1' and '--grace 2s' are both given: the last one counts"}));
  EXPECT_EQ(text_of(twice.request.devices.value), "3");
  EXPECT_EQ(parse({"-n", "2", "-n", "4", "-np", "4", "p"}).warnings,
            Words{"'-n 2' and '-np 4' are both given: the last one counts"});
  EXPECT_EQ(parse({"--core", "--core=0", "p"}).warnings,
            Words{"'--core' and '--core=0' are both given: the last one counts"});
}

TEST(CommandLine, TellsNothingOfAnOptionThatSaysTheSameAgainOrMayBeRepeated) {
  for (const Words& words :
       {Words{"--grace=30", "--grace=30s"}, Words{"--devices=2", "--devices", "2"}, Words{"--core", "--core=1"},
        Words{"--strategy=ddp", "--strategy=DDP"}, Words{"-v", "-v"}, Words{"--env=A=1", "--env=B=2"},
        Words{"--wrap=a", "--wrap@0=b"}, Words{"--num_nodes=2", "--nnodes=2:2"}}) {
    Words line = words;
    line.emplace_back("p");
    EXPECT_EQ(parse(line).warnings, Words()) << words[0] << " " << words[1];
  }
  EXPECT_EQ(parse({"--devices=2", "p"}, {{"LRUN_DEVICES", "4"}}).warnings, Words()) << "an option is to win";
}

TEST(CommandLine, StandaloneHidesRendezvousFlagsAsTorchrunDoes) {
  const Words words{"--standalone",        "--rdzv-id=mine",  "--rdzv-endpoint=no.such.host:1",
                    "--rdzv-backend=etcd", "--rdzv-conf=a=b", "p"};
  EXPECT_EQ(request_of(words), request_of({"--standalone", "p"}));
  EXPECT_NE(refusal({"--standalone", "--node-rank=x", "p"}), "(accepted)") << "the others are still looked at";
}

TEST(CommandLine, HelpAndVersionAreAnsweredBeforeValuesAreRead) {
  EXPECT_EQ(parse({"-h"}).action, Action::kShortHelp);
  EXPECT_EQ(parse({"--help"}).action, Action::kLongHelp);
  EXPECT_EQ(parse({"--hel"}).action, Action::kLongHelp) << "a unique beginning";
  EXPECT_EQ(parse({"--version"}).action, Action::kVersion);
  EXPECT_EQ(parse({"-n", "x", "-vh"}).action, Action::kShortHelp);
  EXPECT_EQ(parse({"--version", "-h"}).action, Action::kVersion) << "the first one decides";
  EXPECT_EQ(parse({"./train", "--help"}).action, Action::kLaunch) << "after PROGRAM it is PROGRAM's";
}

TEST(CommandLine, WithoutAProgramIsRefusedWithTheUsage) {
  const std::string expected =
      "lrun: error: no PROGRAM to run\n"
      "lrun: hint: usage: lrun [options] [--] PROGRAM [ARGS...]; 'lrun -h' shows the options\n";
  EXPECT_EQ(refusal({}), expected);
  EXPECT_EQ(refusal({"-n", "2"}), expected);
  EXPECT_EQ(refusal({"-n", "2", "--"}), expected);
  EXPECT_THAT(refusal({""}), mentions({"PROGRAM"}));
  EXPECT_EQ(
      refusal({"-n", "2", "--rdzv-id", "train.py"}),
      "lrun: error: no PROGRAM to run\n"
      "lrun: hint: '--rdzv-id' took 'train.py' as its value: is a variable empty? PROGRAM stands behind the value\n");
}

}  // namespace
}  // namespace lrun::launcher
