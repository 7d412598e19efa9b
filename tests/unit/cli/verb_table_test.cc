#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "cli/help.h"
#include "unit/cli/parse_support.h"

namespace lrun::launcher {
namespace {

using ::testing::HasSubstr;
using Action = ParsedCommandLine::Action;
using Words = std::vector<std::string>;

TEST(Verb, CountsOnlyAsTheFirstWord) {
  for (const Verb& verb : verb_table()) {
    const std::string name(verb.name);
    const Words line = verb.arguments == "SHELL" ? Words{name, "bash"} : Words{name};
    EXPECT_EQ(parse(line).action, Action::kVerb) << name;
    EXPECT_EQ(parse(line).verb.kind, verb.kind) << name;
    EXPECT_EQ(request_of({"--", name}).command, Words{name});
    EXPECT_EQ(request_of({"-v", name}).command, Words{name});
    EXPECT_EQ(request_of({"./" + name}).command, Words{"./" + name});
    EXPECT_EQ(request_of({name}, {}, "torchrun").command, Words{name}) << "torchrun has no verbs";
    EXPECT_EQ(request_of({name}, {{"LRUN_COMPAT", "torchrun"}}).command, Words{name});
  }
}

TEST(Verb, TakesARunAndOptionsInAnyOrder) {
  const VerbRequest expected{.kind = VerbRequest::Kind::kStatus, .run = "r1", .json = true};
  EXPECT_EQ(parse({"status", "r1", "--json"}).verb, expected);
  EXPECT_EQ(parse({"status", "--js", "r1"}).verb, expected) << "a unique beginning is enough";
  EXPECT_TRUE(parse({"status", "--watch"}).verb.watch);
  EXPECT_EQ(parse({"status"}).verb, VerbRequest{.kind = VerbRequest::Kind::kStatus});
  EXPECT_TRUE(parse({"status", "r1", "-h"}).verb.help);
  EXPECT_TRUE(parse({"status", "--help", "--bogus"}).verb.help);
}

TEST(Verb, RefusesInOneLineAndAHint) {
  EXPECT_EQ(refusal({"status", "--jsno"}),
            "lrun: error: unknown option '--jsno' of 'lrun status'\nlrun: hint: did you mean '--json'?\n");
  EXPECT_EQ(refusal({"status", "--devices"}),
            "lrun: error: unknown option '--devices' of 'lrun status'\n"
            "lrun: hint: it has '--json' and '--watch'\n");
  EXPECT_EQ(refusal({"status", "--json=x"}),
            "lrun: error: '--json' takes no value, got 'x'\nlrun: hint: write only '--json'\n");
  EXPECT_THAT(refusal({"status", "a", "b"}), mentions({"'lrun status'", "'a'", "'b'", "'lrun -- status'"}));
  EXPECT_EQ(refusal({"status", ""}),
            "lrun: error: the name of RUN is empty\nlrun: hint: an unset variable in quotes gives an empty word\n");
}

TEST(Verb, TellsAllUnknownOptionsAtOnce) {
  EXPECT_EQ(refusal({"status", "--jsno", "r1", "--bogus"}),
            "lrun: error: unknown options '--jsno' and '--bogus' of 'lrun status'\n"
            "lrun: hint: '--jsno': did you mean '--json'?\n");
  EXPECT_THAT(refusal({"status", "--bogus", "a", "b"}), mentions({"unknown option '--bogus'"}))
      << "an unknown option may take a value";
}

TEST(Verb, DoctorTakesHostsAndNoRun) {
  const VerbRequest expected{.kind = VerbRequest::Kind::kDoctor,
                             .json = true,
                             .hosts = {{.name = "node1"}, {.name = "node2", .user = "bob"}},
                             .verbose = true};
  EXPECT_EQ(parse({"doctor", "--hosts", "node1,bob@node2", "--json", "--verbose"}).verb, expected);
  EXPECT_THAT(refusal({"doctor", "fever"}), mentions({"'lrun doctor'", "'fever'"}));
  EXPECT_THAT(refusal({"doctor", "--hosts", "a,-oProxyCommand=x"}),
              mentions({"'--hosts a,-oProxyCommand=x'", "is not a host"}));
  EXPECT_THAT(refusal({"doctor", "--hosts", ""}), mentions({"names no host", "'--hosts node1,node2'"}));
  EXPECT_THAT(refusal({"doctor", "--hosts", "./hosts.txt"}), mentions({"is not a host", "'--hostfile ./hosts.txt'"}));
  EXPECT_THAT(refusal({"logs", "--rank", "0"}), mentions({"'--rank' of 'lrun logs'", "'lrun logs 0 2'"}));
  EXPECT_THAT(refusal({"stack", "--rank", "0"}), mentions({"leave it out: every rank is shown"}));
  EXPECT_THAT(refusal({"stack", "--depth", "0"}), mentions({"it has '--brief', '--json' and '--pids [RANK:]PID,...'"}));
  EXPECT_THAT(refusal({"doctor", "--hosts", "n[1-257]"}), mentions({"at most 256 hosts"}));
  EXPECT_EQ(verb_help(VerbRequest::Kind::kDoctor).find("RUN"), std::string::npos) << "it takes none";
}

TEST(Verb, LogsTakesARunAndListsOfRanksInAnyOrder) {
  const VerbRequest expected{.kind = VerbRequest::Kind::kLogs, .run = "20261126", .ranks = {{3, 3}, {0, 2}, {7, 7}}};
  EXPECT_EQ(parse({"logs", "20261126", "3", "0-2,7"}).verb, expected) << "ids begin with a date";
  EXPECT_EQ(parse({"logs", "3", "20261126", "0-2,7"}).verb, expected);
  EXPECT_EQ(parse({"logs", "2-1"}).verb.run, "2-1") << "no list of ranks";
  EXPECT_THAT(refusal({"logs", "a", "b"}), mentions({"'lrun logs' takes one RUN", "'a'", "'b'"}));
  const VerbRequest chosen =
      parse({"logs", "-f", "--stream=stderr", "--grep", "x", "--attempt", "1", "--tail", "5"}).verb;
  EXPECT_TRUE(chosen.follow);
  EXPECT_EQ(chosen.stream, LogStream::kErr);
  EXPECT_EQ(chosen.text, "x");
  EXPECT_EQ(chosen.attempt, 1);
  EXPECT_EQ(chosen.last_lines, 5);
  EXPECT_EQ(refusal({"logs", "--tail", "-1"}),
            "lrun: error: '--tail -1' is not a number\nlrun: hint: write '--tail 1'\n");
  EXPECT_THAT(refusal({"logs", "--stream", "stder"}), mentions({"'--stream stder'", "did you mean 'stderr'?"}));
}

TEST(Verb, WordsThatItDoesNotTakeAreAnswered) {
  EXPECT_THAT(refusal({"status", "--watch", "5"}), mentions({"'--watch' takes no value, got '5'", "every 2 seconds"}));
  EXPECT_THAT(refusal({"report", "--json"}), mentions({"needs '--goodput'", "'lrun explain --json' the cause"}));
  EXPECT_THAT(refusal({"runs", "--goodput"}), HasSubstr("did you mean 'lrun report --goodput'?"));
  EXPECT_THAT(refusal({"report", "--goodput", "--html", "-"}), mentions({"both write to stdout", "report.html"}));
  EXPECT_THAT(refusal({"doctor", "a/train.py"}), mentions({"'lrun --dry-run a/train.py' shows how it"}));
  EXPECT_THAT(refusal({"doctor", "node1"}), mentions({"did you mean 'lrun doctor --hosts node1'?"}));
  EXPECT_THAT(refusal({"runs", "rm"}), mentions({"lrun removes old ones itself"}));
  EXPECT_THAT(refusal({"logs", "--attempt", "last"}), mentions({"leave it out: the last one is meant"}));
  EXPECT_TRUE(parse({"--help", "logs"}).verb.help) << "as 'lrun logs --help'";
  EXPECT_EQ(parse({"--help", "logs"}).verb.kind, VerbRequest::Kind::kLogs);
}

TEST(Verb, OptionsThatOthersCallDifferentlyAreNamed) {
  const std::vector<std::pair<Words, std::string>> meant{{{"logs", "-n", "5"}, "--tail"},
                                                         {{"logs", "-5"}, "--tail 5"},
                                                         {{"logs", "--stderr"}, "--stream stderr"},
                                                         {{"logs", "-F"}, "--follow"},
                                                         {{"logs", "-g", "x"}, "--grep TEXT"},
                                                         {{"status", "-f"}, "--watch"},
                                                         {{"status", "-w"}, "--watch"},
                                                         {{"runs", "-n", "3"}, "lrun runs | tail"}};
  for (const auto& [words, ours] : meant) {
    EXPECT_THAT(refusal(words), HasSubstr("lrun: hint: did you mean '" + ours + "'?\n")) << words[1];
  }
  EXPECT_THAT(refusal({"runs", "--all"}), HasSubstr("hint: leave it out: all runs that are kept are listed\n"));
  EXPECT_THAT(refusal({"again", "-n", "4"}), mentions({"'-n' of 'lrun again'", "'lrun again --dry-run'"}));
  EXPECT_THAT(refusal({"explain", "--html"}), mentions({"did you mean 'lrun report --html report.html'?"}));
  EXPECT_THAT(refusal({"report", "--last"}), mentions({"leave it out: the last run is meant"}));
  EXPECT_THAT(refusal({"completion", "--install"}), mentions({"it has none", "lrun completion SHELL"}));
}

TEST(Verb, AgainTakesARunAndMayOnlyShowIt) {
  const VerbRequest expected{.kind = VerbRequest::Kind::kAgain, .run = "r1", .dry_run = true};
  EXPECT_EQ(parse({"again", "--dry-run", "r1"}).verb, expected);
}

TEST(Verb, StackTakesProcessesWithOrWithoutRanks) {
  EXPECT_EQ(parse({"stack", "--pids", "7:42,43"}).verb.processes, (std::vector<RankProcess>{{7, 42}, {1, 43}}));
  EXPECT_EQ(parse({"stack", "--pids=42"}).verb.processes, (std::vector<RankProcess>{{0, 42}}));
  EXPECT_EQ(parse({"stack", "--pids=0:42,1:0"}).verb.processes, (std::vector<RankProcess>{{0, 42}, {1, 0}}))
      << "rank 1 has ended";
  for (const std::string list : {"", "0", "-1", "x", "1:", ":2", "1:2:3", "1,,2", "99999999999"}) {
    EXPECT_THAT(refusal({"stack", "--pids", list}), mentions({"'--pids " + list + "'", "'--pids 4242,4243'"}));
  }
  EXPECT_EQ(refusal({"stack", "--pids"}),
            "lrun: error: '--pids' needs a value\n"
            "lrun: hint: write '--pids [RANK:]PID,...'\n");
}

TEST(Verb, OptionsOfOneVerbBeginDifferently) {
  for (const Verb& verb : verb_table()) {
    std::set<char> letters;
    for (const VerbOption& option : verb.options) {
      EXPECT_TRUE(letters.insert(option.name.front()).second) << verb.name << " --" << option.name;
    }
  }
}

TEST(Verb, HelpNamesEveryVerbAndItsOptions) {
  for (const Verb& verb : verb_table()) {
    const std::string arguments = verb.arguments.empty() ? "" : " " + std::string(verb.arguments);
    for (const std::string& help : {short_help(), long_help()}) {
      EXPECT_THAT(help, HasSubstr(std::string(verb.name) + arguments + "  ")) << verb.name;
      EXPECT_THAT(help, HasSubstr(std::string(verb.brief) + "\n"));
    }
    for (const VerbOption& option : verb.options) {
      EXPECT_THAT(verb_help(verb.kind), HasSubstr(" --" + std::string(option.name)));
    }
  }
}

TEST(Verb, HelpOfAVerbIsThatOfItsOption) {
  EXPECT_EQ(parse({"help", "stack"}).verb, parse({"stack", "--help"}).verb);
  for (const char* const devices : {"devices", "--devices"}) {
    EXPECT_EQ(parse({"help", devices}).verb.flag, find_flag("devices")) << devices;
  }
  EXPECT_EQ(parse({"help", "-n"}).verb.flag, find_flag("nproc-per-node"));
  EXPECT_EQ(parse({"help"}).verb, VerbRequest{.kind = VerbRequest::Kind::kHelp});
  EXPECT_EQ(refusal({"help", "stakc"}), "lrun: error: no verb 'stakc'\nlrun: hint: did you mean 'stack'?\n");
  EXPECT_EQ(refusal({"help", "train.py"}),
            "lrun: error: no verb 'train.py'\nlrun: hint: 'lrun -h' lists the verbs, "
            "and 'lrun --help' describes every option\n");
  EXPECT_THAT(refusal({"help", "stack", "report"}), mentions({"'lrun help' takes one VERB", "'lrun -- help'"}));
}

TEST(Verb, CompletionTakesTheNameOfAShell) {
  for (const std::string shell : {"bash", "zsh", "fish"}) EXPECT_EQ(parse({"completion", shell}).verb.shell, shell);
  EXPECT_EQ(refusal({"completion"}),
            "lrun: error: 'lrun completion' needs the name of a shell\n"
            "lrun: hint: write 'lrun completion bash', or zsh or fish\n");
  EXPECT_EQ(refusal({"completion", "bsh"}),
            "lrun: error: no completions for 'bsh'\nlrun: hint: did you mean 'bash'?\n");
  EXPECT_THAT(refusal({"completion", "bash", "zsh"}), mentions({"one SHELL", "'bash'", "'zsh'"}));
}

TEST(Verb, TakesTheShortNameOfVerbose) {
  EXPECT_TRUE(parse({"doctor", "-v"}).verb.verbose);
  EXPECT_EQ(refusal({"status", "-v"}).substr(0, 32), "lrun: error: unknown option '-v'");
}

}  // namespace
}  // namespace lrun::launcher
