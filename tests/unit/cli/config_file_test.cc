#include "cli/config_file.h"

#include <gtest/gtest.h>

#include "unit/cli/parse_support.h"

namespace lrun::launcher {
namespace {

std::vector<std::string> texts_of(const std::vector<GivenValue>& values) {
  std::vector<std::string> texts;
  for (const GivenValue& given : values) texts.push_back(given.place + " " + given.as_written());
  return texts;
}

std::string refusal_of(std::string_view text) {
  try {
    (void)parse_config(text, "lrun.toml");
  } catch (const UserError& error) {
    return render(error, false);
  }
  return "(accepted)";
}

TEST(ConfigFile, GivesEveryOptionByItsLongNames) {
  EXPECT_EQ(
      texts_of(parse_config("strategy = 'ddp'\n\nnnodes = 2\nnproc_per_node = \"8\"\nisolate-gpus = true\n", "f")),
      (std::vector<std::string>{"f:1 strategy = \"ddp\"", "f:3 nnodes = 2", "f:4 nproc_per_node = 8",
                                "f:5 isolate-gpus = true"}));
}

TEST(ConfigFile, OfAnOptionalValueTrueIsTheFirstChoiceAndFalseNothing) {
  EXPECT_EQ(parse_config("dry-run = true", "f").at(0).text, "text");
  EXPECT_TRUE(parse_config("dry-run = false", "f").empty());
}

TEST(ConfigFile, RefusalsNameFileAndLine) {
  EXPECT_THAT(refusal_of("seed = 1\ndevcies = 2\n"), mentions({"lrun.toml:2", "'devcies'", "'devices'"}));
  EXPECT_EQ(refusal_of("seed = 1\n\nseed = 2\n").substr(0, 36), "lrun: error: lrun.toml:3: not TOML: ");
  EXPECT_THAT(refusal_of("num_nodes = 1\nnnodes = 2\n"), mentions({"lrun.toml:2", "'nnodes'", "1"}));
  EXPECT_THAT(refusal_of("devices = true\n"),
              mentions({"lrun.toml:1", "'devices = true'", "'devices = N|LIST|auto|-1'"}));
  EXPECT_THAT(refusal_of("strategy = ddp\n"),
              mentions({"lrun.toml:1", "a text stands in quotes", "'strategy = \"ddp\"'"}));
  EXPECT_THAT(refusal_of("devices = [0, 1]\n"), mentions({"lrun.toml:1", "'devices'", "'devices = \"0,1\"'"}));
  EXPECT_THAT(refusal_of("help = true\n"), mentions({"lrun.toml:1", "'help'"}));
  EXPECT_THAT(refusal_of("'strategy@0' = 'dp'\n"), mentions({"lrun.toml:1", "'strategy@0'"}));
}

TEST(ConfigFile, TellsAllUnknownSettingsAtOnce) {
  EXPECT_EQ(refusal_of("devcies = 2\nseed = 1\n[train]\nx = 1\n"),
            "lrun: error: lrun.toml:1: unknown settings 'devcies' and 'train'\n"
            "lrun: hint: 'devcies': did you mean 'devices'?\n");
  EXPECT_THAT(refusal_of("pty = 3\ndevcies = 2\n"), mentions({"lrun.toml:1: 'pty = 3'"})) << "the first mistake";
  EXPECT_THAT(refusal_of("devcies = 2\npty = 3\n"), mentions({"lrun.toml:1: unknown setting 'devcies'"}));
}

TEST(ConfigFile, SaysWhatToWriteInstead) {
  EXPECT_THAT(refusal_of("seed = 1\n\nseed = 2\n"), mentions({"leave one of the two out"}));
  EXPECT_THAT(refusal_of("seed =\n"), mentions({"write the value behind '='", "'seed'"}));
  EXPECT_THAT(refusal_of("output = \xE2\x80\x9Craw\xE2\x80\x9D\n"), mentions({"plain quotes"}));
  EXPECT_THAT(refusal_of("[train]\ndevices = 2\n"), mentions({"leave the line '[train]' out"}));
  EXPECT_THAT(refusal_of("program = \"x\"\n"), mentions({"on the command line"}));
  EXPECT_THAT(refusal_of("LRUN_DEVICES = 2\n"), mentions({"did you mean 'devices'?"}));
  EXPECT_THAT(refusal_of("nproc = 2\n"), mentions({"did you mean 'nproc-per-node'?"})) << "a beginning, as on the line";
  EXPECT_THAT(refusal_of("timeout = 10m\n"), mentions({"'timeout = \"10m\"'"}));
  EXPECT_THAT(refusal_of("isolate-gpus = yes\n"), mentions({"'isolate-gpus = true'"}));
  EXPECT_THAT(refusal_of("isolate-gpus = True\n"), mentions({"'isolate-gpus = true'"}));
  EXPECT_THAT(refusal_of("standalone = False\n"), mentions({"'standalone = false'"}));
  EXPECT_THAT(refusal_of("devices = 2, strategy = ddp\n"), mentions({"each setting stands on a line of its own"}));
  EXPECT_THAT(refusal_of("wrap = nsys --trace=cuda,nvtx\n"), mentions({"'wrap = \"nsys --trace=cuda,nvtx\"'"}));
  EXPECT_THAT(refusal_of("export devices=2\n"), mentions({"leave 'export' out"}));
  EXPECT_THAT(refusal_of("<<<<<<< HEAD\ndevices = 2\n"), mentions({"a conflict of git"}));
}

TEST(ConfigFile, BytesThatAreNoTomlAreRefused) {
  for (const std::string_view text :
       {"devices", "= 2", "seed = \"\xff\"", "[", "a = 1 b = 2", "seed = é", "séed = 1", "seed = 1 é"}) {
    EXPECT_EQ(refusal_of(text).substr(0, 36), "lrun: error: lrun.toml:1: not TOML: ") << text;
  }
}

TEST(ConfigFile, LettersOfAnyLanguageAreWelcomeInQuotesAndComments) {
  for (const std::string_view text : {R"(chdir = "é" # é)", R"(chdir = 'é')", "# it's é\n'chdir' = '''\\'é'''",
                                      "chdir = \"\"\"\n\\\"é\"\"\"\"", "\xef\xbb\xbf\x63hdir = \"\\\"é\""}) {
    const std::vector<GivenValue> values = parse_config(text, "f");
    ASSERT_EQ(values.size(), 1U) << text;
    EXPECT_NE(values[0].text.find("é"), std::string::npos) << values[0].text;
  }
  EXPECT_EQ(parse_config("chdir = '%C3%A9%'", "f")[0].text, "%C3%A9%") << "a '%' is only that";
  EXPECT_THAT(refusal_of("chdir = '''\n'''\nseed = é"), mentions({"lrun.toml:3", "TOML", "ASCII"}));
}

/// The files of a machine that has these.
ReadFile files(std::map<std::string, std::string> texts) {
  return [texts = std::move(texts)](const std::string& path) {
    const auto found = texts.find(path);
    return found == texts.end() ? FileText{ENOENT, {}} : FileText{0, found->second};
  };
}

LaunchRequest with_file(const std::string& text, std::vector<std::string> words, Variables variables = {}) {
  words.insert(words.begin(), "lrun");
  return parse_command_line(words, Environment(std::move(variables)), files({{"lrun.toml", text}})).request;
}

TEST(ConfigFile, AFlagPrecedesAVariableThenTheFileThenTheDefault) {
  const std::string file = "seed = 1\ngrace = 5\n";
  EXPECT_EQ(with_file(file, {"--seed=3", "p"}, {{"LRUN_SEED", "2"}}).seed.value, 3U);
  EXPECT_EQ(with_file(file, {"p"}, {{"LRUN_SEED", "2"}}).seed.value, 2U);
  EXPECT_EQ(with_file(file, {"p"}).seed,
            (Setting<std::optional<std::uint64_t>>{1, Source::kConfig, "lrun.toml:1: seed"}));
  EXPECT_EQ(with_file("", {"p"}).seed.value, std::nullopt);
  EXPECT_EQ(with_file(file, {"p"}).grace.value, Duration(5000));
}

TEST(ConfigFile, OfTwoFlagsThatSayTheSameTheStrongerSourceCounts) {
  const auto workers = [](const LaunchRequest& request) {
    return "devices=" + text_of(request.devices.value) + " workers=" + text_of(request.nproc_per_node.value);
  };
  EXPECT_EQ(workers(with_file("devices = 2", {"-n", "3", "p"})), "devices= workers=3");
  EXPECT_EQ(workers(with_file("nproc-per-node = 2", {"--devices", "3", "p"})), "devices=3 workers=");
  EXPECT_EQ(workers(with_file("devices = 2", {"p"}, {{"LRUN_NPROC_PER_NODE", "3"}})), "devices= workers=3");
  EXPECT_EQ(workers(with_file("devices = 2", {"p"}, {{"PET_NPROC_PER_NODE", "3"}})), "devices= workers=3");
  EXPECT_EQ(workers(request_of({"-n", "3", "p"}, {{"LRUN_DEVICES", "2"}})), "devices= workers=3");
  EXPECT_EQ(workers(request_of({"--devices", "3", "p"}, {{"PET_NPROC_PER_NODE", "2"}})), "devices=3 workers=");
  EXPECT_EQ(workers(request_of({"p"}, {{"LRUN_DEVICES", "3"}, {"PET_NPROC_PER_NODE", "2"}})), "devices=3 workers=");
  EXPECT_EQ(workers(request_of({"--devices", "3", "-n", "2", "p"})), "devices=3 workers=2") << "the plan refuses it";
  EXPECT_EQ(workers(with_file("devices = 'x'", {"-n", "3", "p"})), "devices= workers=3") << "unread";
  const LaunchRequest both = with_file("devices = '2,3'", {"-n", "2", "p"});
  EXPECT_EQ(workers(both), "devices=2,3 workers=2") << "which devices is more than how many";
  EXPECT_EQ(with_file("bind = 'none'", {"--numa-binding", "node", "p"}).bind.value, Binding::kNuma);
  EXPECT_EQ(with_file("numa-binding = 'node'", {"--bind", "core", "p"}).bind.value, Binding::kCore);
  EXPECT_THROW(request_of({"--bind", "core", "--numa-binding", "node", "p"}), UserError);
}

TEST(ConfigFile, AVariableOfTheLineIsThereAlsoWhenTheFileTakesItAway) {
  const LaunchRequest request = with_file("unset = ['A']\nenv = ['B=1']", {"--env", "A=2", "--unset", "B", "p"});
  std::string changes;
  for (const EnvironmentChange& change : request.setup.environment) changes += as_written(change) + "; ";
  EXPECT_EQ(changes, "--unset B; --env A=2; ");
}

TEST(ConfigFile, AValueThatIsHiddenIsNotRead) {
  EXPECT_EQ(text_of(with_file("devices = 'x'", {"--devices=2", "p"}).devices.value), "2");
  EXPECT_THROW(with_file("devices = 'x'", {"p"}), UserError);
}

TEST(ConfigFile, ValuesAreCheckedAsThoseOfTheLine) {
  const auto refused = [](const std::string& file) {
    try {
      (void)with_file(file, {"p"});
    } catch (const UserError& error) {
      return render(error, false);
    }
    return std::string("(accepted)");
  };
  EXPECT_THAT(refused("\nstrategy = 'dpd'"), mentions({"lrun.toml:2", "'strategy = \"dpd\"'", "'ddp'"}));
  EXPECT_EQ(refused("grace = 'soon'"),
            "lrun: error: lrun.toml:1: 'grace = \"soon\"': not a time; allowed: a number with ms, s, m, h or d\n"
            "lrun: hint: for example 'grace = \"30s\"'\n");
  EXPECT_THAT(refused("logs-specs = 'mine'"), mentions({"lrun.toml:1", "'logs-specs = \"mine\"'"}));
}

TEST(ConfigFile, SwitchesAreTrueOrFalse) {
  for (const char* const value : {"''", "2", "1", "'no'", "'off'", "0.5"}) {
    EXPECT_THAT(refusal_of(std::string("seed = 1\nisolate-gpus = ") + value),
                mentions({"lrun.toml:2: 'isolate-gpus = ", "neither true nor false",
                          "write 'isolate-gpus = true', or leave it out"}));
  }
  EXPECT_TRUE(with_file("isolate-gpus = true", {"p"}).isolate_gpus);
  EXPECT_FALSE(with_file("isolate-gpus = false", {"p"}).isolate_gpus);
  EXPECT_EQ(with_file("verbose = true", {"p"}).verbosity, 1);
  EXPECT_EQ(with_file("verbose = 2", {"p"}).verbosity, 2);
}

TEST(ConfigFile, IsTheOneThatWasAskedFor) {
  const auto read =
      files({{"lrun.toml", "seed = 1"}, {"a.toml", "seed = 2"}, {"b.toml", "seed = 3"}, {"/dev/null", ""}});
  const auto seed = [&](std::vector<std::string> words, Variables variables) {
    words.insert(words.begin(), "lrun");
    return parse_command_line(words, Environment(std::move(variables)), read).request.seed.value;
  };
  EXPECT_EQ(seed({"p"}, {}), 1U);
  EXPECT_EQ(seed({"--config", "a.toml", "p"}, {{"LRUN_CONFIG", "b.toml"}}), 2U);
  EXPECT_EQ(seed({"p"}, {{"LRUN_CONFIG", "b.toml"}}), 3U);
  EXPECT_EQ(seed({"--config=/dev/null", "p"}, {}), std::nullopt);
}

TEST(ConfigFile, InsideARunOnlyAFileThatIsNamedCounts) {
  EXPECT_FALSE(with_file("seed = 1", {"p"}, {{"LRUN_RUN_ID", "r"}}).seed.given());
  EXPECT_TRUE(with_file("seed = 1", {"--config=lrun.toml", "p"}, {{"LRUN_RUN_ID", "r"}}).seed.given());
}

TEST(ConfigFile, InAnotherFormatIsToldAboutWhereItWouldCount) {
  const auto warnings = [](const std::string& name, std::vector<std::string> words, Variables variables = {}) {
    words.insert(words.begin(), "lrun");
    return parse_command_line(words, Environment(std::move(variables)), files({{name, "seed = 1"}})).warnings;
  };
  EXPECT_EQ(warnings("lrun.yaml", {"p"}),
            (std::vector<std::string>{
                "'lrun.yaml' is not read: settings stand in 'lrun.toml', in lines such as 'devices = 8'"}));
  EXPECT_EQ(warnings("lrun.json", {"p"}).size(), 1U);
  EXPECT_TRUE(warnings("lrun.toml", {"p"}).empty());
  EXPECT_TRUE(warnings("lrun.yaml", {"--config=lrun.yaml", "p"}).empty()) << "asked for, whatever its name";
  EXPECT_TRUE(warnings("lrun.yaml", {"p"}, {{"LRUN_RUN_ID", "r"}}).empty());
}

TEST(ConfigFile, OfTheScriptsFolderOrTheParentIsToldNotToBeRead) {
  const auto note = [](const std::string& name, std::vector<std::string> words, Variables variables = {}) {
    words.insert(words.begin(), "lrun");
    return parse_command_line(words, Environment(std::move(variables)), files({{name, "seed = 1"}})).note;
  };
  EXPECT_EQ(note("../lrun.toml", {"p"}),
            "'../lrun.toml' is not read: lrun reads that of the folder in which it is started; '--config ../lrun.toml' "
            "reads it");
  EXPECT_THAT(note("job/lrun.toml", {"job/train.py"}), mentions({"'--config job/lrun.toml'"}));
  EXPECT_EQ(note("lrun.toml", {"p"}), "");
  EXPECT_EQ(note("../lrun.toml", {"--config=../lrun.toml", "p"}), "");
  EXPECT_EQ(note("../lrun.toml", {"p"}, {{"LRUN_RUN_ID", "r"}}), "");
  EXPECT_EQ(note("../lrun.toml", {"p"}, {{"HOME", "/home/a"}, {"PWD", "/home/a/job"}}), "") << "it is of other runs";
  EXPECT_EQ(note("/home/a/lrun.toml", {"/home/a/train.py"}, {{"HOME", "/home/a"}}), "");
}

TEST(ConfigFile, ThatIsNamedMustBeThere) {
  EXPECT_EQ(refusal({"--config", "no.toml", "p"}),
            "lrun: error: cannot read the settings in 'no.toml': No such file or directory\n"
            "lrun: hint: name a file that is there; '--config /dev/null' reads none\n");
}

}  // namespace
}  // namespace lrun::launcher
