#include "cli/horovodrun_options.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "parse_support.h"

namespace lrun::launcher {
namespace {

using Words = std::vector<std::string>;

LaunchRequest asked(const Words& words) { return request_of(words, {}, "/opt/bin/horovodrun"); }

std::string refused(Words words) {
  words.push_back("p");
  return refusal(words, {}, "horovodrun");
}

/// The workers' variables that it sets, as 'A=1 B=2'.
std::string variables(Words words) {
  words.push_back("p");
  std::string text;
  for (const EnvironmentChange& change : asked(words).setup.environment) {
    text += (text.empty() ? "" : " ") + change.name + "=" + change.value;
  }
  return text;
}

TEST(Horovodrun, IsAPersonalityByItsName) {
  const LaunchRequest request = asked({"-np", "4", "python", "train.py", "-np", "5"});
  EXPECT_EQ(request.compat, Compat::kHorovodrun);
  EXPECT_EQ(text_of(request.nproc_per_node.value), "4");
  EXPECT_EQ(request.command, (Words{"python", "train.py", "-np", "5"}));
  EXPECT_EQ(asked({"status"}).command, Words{"status"}) << "horovodrun has no verbs";
}

TEST(Horovodrun, TakesTheLineForSeveralHosts) {
  const LaunchRequest request = asked({"-np", "8", "-H", "hostname1:4,hostname2:4", "python", "train.py"});
  EXPECT_EQ(request.hosts.value.text, "hostname1:4,hostname2:4");
  EXPECT_EQ(text_of(request.nproc_per_node.value), "8");
  EXPECT_EQ(asked({"--num-proc=8", "--hosts", "a:8", "p"}).nproc_per_node,
            (Setting<DeviceRequest>{{DeviceRequest::Kind::kProcesses, 8}, Source::kFlag, "--num-proc"}));
  EXPECT_EQ(asked({"-hostfile", "hosts", "p"}).hostfile.value, "hosts");
}

TEST(Horovodrun, MakesOneOptionOfSeveralOfItsOwnAndIsNotWarnedOfThat) {
  const ParsedCommandLine parsed = parse({"-p", "2222", "-i", "key", "-np", "4", "p"}, {}, "horovodrun");
  EXPECT_EQ(parsed.warnings, Words());
  EXPECT_EQ(parsed.request.ssh.value, (Words{"ssh", "-p", "2222", "-i", "key"}));
}

TEST(Horovodrun, HasOptionsThatAreOnesOfLrun) {
  const LaunchRequest request = asked({"--verbose", "--output-filename", "logs", "--start-timeout", "40", "--gloo",
                                       "--disable-cache", "--prefix-output-with-timestamp", "--grace", "5s", "p"});
  EXPECT_EQ(request.verbosity, 1);
  EXPECT_EQ(request.log_dir, (Setting<std::string>{"logs", Source::kFlag, "--output-filename"}));
  EXPECT_EQ(request.start_timeout.value, Duration(40'000));
  EXPECT_TRUE(request.output.timestamps);
  EXPECT_EQ(request.grace.value, Duration(5'000)) << "and lrun's own";
  EXPECT_EQ(parse({"-v"}, {}, "horovodrun").action, ParsedCommandLine::Action::kVersion);
}

TEST(Horovodrun, ReachesHostsByItsPortAndIdentity) {
  EXPECT_EQ(asked({"-p", "2222", "p"}).ssh.value, (Words{"ssh", "-p", "2222"}));
  EXPECT_EQ(asked({"-i", "my key", "--ssh-port=22", "p"}).ssh.value, (Words{"ssh", "-i", "my key", "-p", "22"}));
  EXPECT_EQ(asked({"-i", "it's", "p"}).ssh.value, (Words{"ssh", "-i", "it's"}));
  EXPECT_EQ(refused({"-p", "70000"}),
            "lrun: error: '-p 70000': not a port; allowed: 1 to 65535\n"
            "lrun: hint: for example '-p 22'\n");
}

TEST(Horovodrun, NamesNetworkInterfaces) {
  EXPECT_EQ(variables({"--network-interfaces", "eth0,eth1"}), "HOROVOD_GLOO_IFACE=eth0 NCCL_SOCKET_IFNAME=eth0,eth1");
  EXPECT_EQ(variables({"--network-interface", "eth0", "--network-interface", "eth1"}),
            "HOROVOD_GLOO_IFACE=eth0 NCCL_SOCKET_IFNAME=eth0,eth1");
  EXPECT_EQ(refused({"--network-interface="}),
            "lrun: error: '--network-interface ': the name of a network interface is missing\n"
            "lrun: hint: for example '--network-interface eth0'\n");
}

TEST(Horovodrun, TunesByVariables) {
  EXPECT_EQ(variables({"--fusion-threshold-mb", "32", "--cycle-time-ms=3.5", "--no-stall-check"}),
            "HOROVOD_FUSION_THRESHOLD=33554432 HOROVOD_CYCLE_TIME=3.5 HOROVOD_STALL_CHECK_DISABLE=1");
  EXPECT_EQ(variables({"--autotune", "--no-hierarchical-allreduce", "--timeline-filename", "t.json", "--tcp"}),
            "HOROVOD_AUTOTUNE=1 HOROVOD_HIERARCHICAL_ALLREDUCE=0 HOROVOD_TIMELINE=t.json NCCL_IB_DISABLE=1");
  EXPECT_EQ(variables({"--log-level", "INFO", "--log-without-timestamp"}),
            "HOROVOD_LOG_LEVEL=INFO HOROVOD_LOG_HIDE_TIME=1");
  EXPECT_EQ(variables({"--cache-capacity", "1", "--cache-capacity", "2"}), "HOROVOD_CACHE_CAPACITY=2");
}

TEST(Horovodrun, ChecksValuesInItsOwnWords) {
  EXPECT_EQ(refused({"--fusion-threshold-mb", "much"}),
            "lrun: error: '--fusion-threshold-mb much': not a whole number; allowed: 0 to 2147483647\n"
            "lrun: hint: for example '--fusion-threshold-mb 1'\n");
  EXPECT_EQ(refused({"--autotune-gaussian-process-noise", "1.5"}),
            "lrun: error: '--autotune-gaussian-process-noise 1.5': not a number from 0 to 1\n"
            "lrun: hint: for example '--autotune-gaussian-process-noise 0.5'\n");
  EXPECT_NE(refused({"--cycle-time-ms", "nan"}), "(accepted)");
  EXPECT_NE(refused({"--cycle-time-ms", "-1"}), "(accepted)");
  EXPECT_THAT(refused({"--log-level", "LOUD"}),
              mentions({"'--log-level LOUD'", "TRACE", "DEBUG", "WARNING", "ERROR", "FATAL", "'--log-level INFO'"}));
  EXPECT_EQ(refused({"--gloo=1"}), "lrun: error: '--gloo' takes no value, got '1'\nlrun: hint: write only '--gloo'\n");
  EXPECT_EQ(refusal({"--cycle-time-ms"}, {}, "horovodrun"),
            "lrun: error: '--cycle-time-ms' needs a value\nlrun: hint: write '--cycle-time-ms VALUE'\n");
}

TEST(Horovodrun, RefusesWithWhatToTypeInstead) {
  const auto hint_of = [](const Words& words) {
    const std::string text = refused(words);
    return text.substr(std::min(text.size(), text.find("lrun: hint: ")));
  };
  EXPECT_THAT(refused({"--mpi"}), mentions({"'--mpi'", "'mpirun -np N PROGRAM'"}));
  for (const char* const elastic : {"--min-np", "--max-np", "--host-discovery-script", "--reset-limit"}) {
    EXPECT_NE(hint_of({elastic, "2"}).find("lrun --strategy horovod --num-nodes 2:4"), std::string::npos) << elastic;
  }
  EXPECT_NE(hint_of({"--check-build"}).find("gloo_built"), std::string::npos);
  EXPECT_NE(hint_of({"--config-file", "a.yaml"}).find("lrun.toml"), std::string::npos);
  EXPECT_NE(hint_of({"--binding-args", "x"}).find("--bind core"), std::string::npos);
}

TEST(Horovodrun, IsNotMeantByOtherNames) {
  EXPECT_NE(refusal({"--fusion-threshold-mb", "32", "p"}), "(accepted)");
  EXPECT_NE(refusal({"--num-proc", "2", "p"}, {}, "torchrun"), "(accepted)");
}

TEST(HorovodrunOptions, AreNotThoseOfLrun) {
  std::set<std::string> own;
  for (const Flag& flag : flag_table()) {
    for (const std::string& name : long_names_of(flag)) own.insert(folded_name(name));
    for (const std::string_view name : words_of(flag.short_names)) own.insert("-" + std::string(name));
  }
  own.erase("-v");  // lrun's --verbose, horovodrun's --version
  std::set<std::string> seen;
  for (const HorovodrunOption& option : horovodrun_options()) {
    for (const std::string_view name : words_of(option.names)) {
      EXPECT_TRUE(seen.insert(std::string(name)).second) << name << " is there twice";
      EXPECT_FALSE(own.contains(std::string(name))) << name << " is lrun's own";
    }
    EXPECT_EQ(option.what.empty(), option.meaning == HorovodrunOption::Meaning::kNothing ||
                                       option.meaning == HorovodrunOption::Meaning::kNetwork)
        << option.names;
  }
}

/// Every option of the table is understood: with a good value it is accepted, or refused as the table says.
TEST(HorovodrunOptions, AreAllUnderstood) {
  for (const HorovodrunOption& option : horovodrun_options()) {
    if (option.names == "-v") continue;  // asks for the version
    const bool is_level = option.meaning == HorovodrunOption::Meaning::kLevel;
    for (const std::string_view name : words_of(option.names)) {
      Words words{std::string(name)};
      if (option.value == ValueKind::kRequired) words.emplace_back(is_level ? "INFO" : "1");
      const bool is_refused = option.meaning == HorovodrunOption::Meaning::kRefused;
      EXPECT_EQ(refused(words) == "(accepted)", !is_refused) << name << ": " << refused(words);
    }
  }
}

}  // namespace
}  // namespace lrun::launcher
