#include <gtest/gtest.h>

#include "unit/cli/parse_support.h"

namespace lrun::launcher {
namespace {

using Action = ParsedCommandLine::Action;
using Words = std::vector<std::string>;

template <class T>
Setting<T> by_flag(T value, const std::string& origin) {
  return {std::move(value), Source::kFlag, origin};
}

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

TEST(CommandLine, BlanksAroundANumberAreNoMatter) {
  const LaunchRequest request = request_of({"--nnodes=1 : 2", "-n", " 3", "--max-restarts= 4 ", "p"});
  EXPECT_EQ(request.min_nodes, 1);
  EXPECT_EQ(request.num_nodes.value, 2);
  EXPECT_EQ(text_of(request.nproc_per_node.value), "3");
  EXPECT_EQ(request.max_restarts.value, 4);
}

TEST(CommandLine, ReadsEveryFormOfADeviceList) {
  const std::vector<std::pair<std::string, std::string>> cases{{"8", "8"},
                                                               {"2,3", "2,3"},
                                                               {"\"0,2\"", "0,2"},
                                                               {"'0, 2'", "0,2"},
                                                               {" 3 ", "3"},
                                                               {"2,", "2,"},
                                                               {"0,", "0,"},
                                                               {"1,,3", "1,3"},
                                                               {"auto", "auto"},
                                                               {"-1", "-1"},
                                                               {"08", "8"},
                                                               {"3,1", "3,1"},
                                                               {"GPU-1c-2d", "GPU-1c-2d,"},
                                                               {"MIG-7a,GPU-1c", "MIG-7a,GPU-1c"}};
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(text_of(request_of({"--devices=" + text, "p"}).devices.value), expected) << text;
  }
}

TEST(CommandLine, ReadsEveryFormOfANodeCount) {
  EXPECT_EQ(request_of({"--nnodes", "3", "p"}).num_nodes, by_flag(3, "--nnodes"));
  EXPECT_EQ(request_of({"--nnodes", "1:1", "p"}).num_nodes.value, 1) << "torchrun's own default";
  EXPECT_EQ(request_of({"--num_nodes", "4", "p"}).num_nodes.value, 4);
  EXPECT_EQ(request_of({"--num_nodes", "4", "p"}).min_nodes, 0);
  EXPECT_EQ(request_of({"--nnodes", "2:4", "p"}).num_nodes, by_flag(4, "--nnodes"));
  EXPECT_EQ(request_of({"--nnodes", "2:4", "p"}).min_nodes, 2);
}

TEST(CommandLine, ReadsEveryFormOfADryRun) {
  EXPECT_EQ(request_of({"p"}).dry_run, DryRun::kNo);
  EXPECT_EQ(request_of({"--dry-run", "p"}).dry_run, DryRun::kText);
  EXPECT_EQ(request_of({"--dry-run=text", "p"}).dry_run, DryRun::kText);
  EXPECT_EQ(request_of({"--dry-run=JSON", "p"}).dry_run, DryRun::kJson);
  EXPECT_EQ(request_of({"--dry-run", "json"}).command, Words{"json"}) << "the value needs its '='";
}

TEST(CommandLine, StrategyNamesHaveNoCase) {
  for (const char* const name : {"ddp", "DDP", "Ddp"}) {
    EXPECT_EQ(text_of(request_of({"--strategy", name, "p"}).strategy.value), "ddp") << name;
  }
  EXPECT_EQ(text_of(request_of({"--strategy", "dp", "p"}).strategy.value), "dp");
}

TEST(CommandLine, AcceptsTorchrunFlagsThatAskForNothingOnOneMachine) {
  const LaunchRequest plain = request_of({"p"});
  for (const Words& words :
       {Words{"--rdzv-endpoint=", "p"}, Words{"--monitor-interval", "0.1", "p"}, Words{"--start-method=fork", "p"},
        Words{"-r", "0", "-t0", "p"}, Words{"--role=default", "p"}}) {
    EXPECT_EQ(request_of(words), plain) << words.front();
  }
}

TEST(CommandLine, KeepsAtMostASecondOfTorchrunsInterval) {
  EXPECT_EQ(request_of({"--monitor-interval=0.5", "p"}).monitor_interval, Duration(500));
  EXPECT_EQ(request_of({"--monitor-interval", "5", "p"}).monitor_interval, Duration(1000));
  EXPECT_EQ(request_of({"--monitor-interval=inf", "p"}).monitor_interval, Duration(1000));
}

TEST(CommandLine, KeepsWhereLaunchersAreToMeet) {
  const RendezvousRequest rendezvous =
      request_of({"--rdzv-backend", "C10D", "--rdzv-endpoint", " [::1]:29400 ", "--master-addr=a", "--local-addr=b",
                  "--rdzv-conf=join_timout=5,read_timeout=60", "p"})
          .rendezvous;
  EXPECT_EQ(rendezvous.backend, by_flag(RendezvousBackend::kC10d, "--rdzv-backend"));
  EXPECT_EQ(rendezvous.endpoint, by_flag(Endpoint{"::1", 29400}, "--rdzv-endpoint"));
  EXPECT_EQ(rendezvous.master_addr, by_flag<std::string>("a", "--master-addr"));
  EXPECT_EQ(rendezvous.local_addr, by_flag<std::string>("b", "--local-addr"));
  EXPECT_EQ(rendezvous.warnings,
            Words{"'--rdzv-conf join_timout=5,read_timeout=60': 'join_timout' is unknown and ignored; did you mean "
                  "'join_timeout'?"});
}

TEST(CommandLine, TakesAddressesOfIPv6InBracketsAndOutOfThem) {
  for (const char* const address : {"[fd00::1]", " [fd00::1] ", "fd00::1"}) {
    const RendezvousRequest asked = request_of({"--master-addr", address, "--local-addr", address, "p"}).rendezvous;
    EXPECT_EQ(asked.master_addr.value, "fd00::1") << address;
    EXPECT_EQ(asked.local_addr.value, "fd00::1") << address;
  }
  EXPECT_EQ(request_of({"--rdzv-endpoint", "[fd00::1]", "p"}).rendezvous.endpoint.value,
            (Endpoint{"fd00::1", std::nullopt}));
}

TEST(CommandLine, ReadsHowLaunchersWaitForEachOther) {
  const auto conf = [](const std::string& text) { return request_of({"--rdzv-conf=" + text, "p"}).rendezvous; };
  const RendezvousRequest all = conf(" join_timeout = 20 , is_host=Yes,last_call_timeout=2,read_timeout=3");
  EXPECT_EQ(all.join_timeout, Duration(20'000));
  EXPECT_EQ(all.is_host, true);
  EXPECT_EQ(all.last_call, Duration(2000));
  EXPECT_EQ(all.connect_timeout, Duration(3000));
  EXPECT_EQ(all.heartbeat, std::nullopt);
  EXPECT_EQ(conf("is_host=F").is_host, false);
  EXPECT_EQ(conf("heartbeat_timeout=1").heartbeat, Duration(1000));
  EXPECT_EQ(conf("keep_alive_interval=1,keep_alive_max_attempt=4").heartbeat, Duration(4000)) << "as in torchrun";
  EXPECT_EQ(conf("keep_alive_max_attempt=2").heartbeat, Duration(10'000));
  EXPECT_EQ(request_of({"--node-rank", "3", "p"}).rendezvous.node_rank, by_flag(3, "--node-rank"));
}

TEST(CommandLine, TakesTheMembersOfAnEtcd) {
  const RendezvousRequest asked = request_of({"--rdzv-backend=ETCD-v2", "--rdzv-endpoint=a,b:3, [::1]:4",
                                              "--rdzv-conf=protocol=http,etcd_prefix=/x/", "p"})
                                      .rendezvous;
  EXPECT_TRUE(asked.uses_etcd());
  EXPECT_EQ(asked.endpoint.value, (Endpoint{"a", std::nullopt}));
  EXPECT_EQ(asked.more_endpoints, (std::vector<Endpoint>{{"b", 3}, {"::1", 4}}));
  EXPECT_EQ(asked.etcd_prefix, "/x");
  EXPECT_EQ(request_of({"--rdzv-conf=join_timeout=3", "p"}).rendezvous.etcd_prefix, "/lrun");
  EXPECT_NE(refusal({"--rdzv-endpoint=a,,b", "p"}), "(accepted)");
}

TEST(CommandLine, TakesTheCertificatesOfAnEtcdByTheNamesOfBothOfTorchrunsBackends) {
  const auto asked = [](const std::string& conf) { return request_of({"--rdzv-conf=" + conf, "p"}).rendezvous; };
  const EtcdTls files{.authorities = "a.pem", .certificate = "b.pem", .key = "b.key"};
  EXPECT_EQ(asked("protocol=HTTPS,cacert=a.pem,cert=b.pem,key=b.key").etcd_tls, files);
  EXPECT_EQ(asked("protocol=https,ca_cert=a.pem,ssl_cert=b.pem,ssl_cert_key=b.key").etcd_tls, files);
  EXPECT_TRUE(asked("protocol=https").etcd_is_asked_over_tls);
  EXPECT_FALSE(asked("cacert=a.pem").etcd_is_asked_over_tls);
  EXPECT_EQ(asked("certt=x").warnings.at(0),
            "'--rdzv-conf certt=x': 'certt' is unknown and ignored; did you mean 'cert'?");
  EXPECT_EQ(asked("cert=x").warnings.size(), 0U);
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

}  // namespace
}  // namespace lrun::launcher
