#include "cli/print_config.h"

#include <gtest/gtest.h>

#include "unit/cli/parse_support.h"

namespace lrun::launcher {
namespace {

std::string printed(std::vector<std::string> words, Variables variables = {}, const std::string& file = {}) {
  words.insert(words.begin(), "lrun");
  words.emplace_back("--print-config");
  const auto read = [&](const std::string&) { return FileText{file.empty() ? ENOENT : 0, file}; };
  const ParsedCommandLine parsed = parse_command_line(words, Environment(std::move(variables)), read);
  EXPECT_EQ(parsed.action, ParsedCommandLine::Action::kPrintConfig);
  return config_text(parsed.settings);
}

std::string line_with(const std::string& text, const std::string& beginning) {
  const std::size_t at = ("\n" + text).find("\n" + beginning);
  return at == std::string::npos ? std::string() : text.substr(at, text.find('\n', at) - at);
}

TEST(PrintConfig, TellsValueAndSource) {
  const std::string text = printed({"-n4", "-vv"}, {{"LRUN_STRATEGY", "DP"}, {"PET_NNODES", "1"}}, "\nseed = 7\n");
  EXPECT_EQ(line_with(text, "nproc-per-node"), "nproc-per-node = 4                        # -n");
  EXPECT_EQ(line_with(text, "strategy"), "strategy = \"DP\"                           # LRUN_STRATEGY");
  EXPECT_EQ(line_with(text, "num-nodes"), "num-nodes = 1                             # PET_NNODES");
  EXPECT_EQ(line_with(text, "seed"), "seed = 7                                  # lrun.toml:2");
  EXPECT_EQ(line_with(text, "verbose"), "verbose = 2                               # -v");
  EXPECT_EQ(line_with(text, "# grace"), "# grace = 30s                             # default");
}

TEST(PrintConfig, NamesEverySettingOnce) {
  const std::string text = printed({});
  for (const Flag& flag : flag_table()) {
    const bool expected = in_this_version(flag) && flag.action == FlagAction::kSetting;
    const std::string line = line_with(text, "# " + std::string(flag.name));
    EXPECT_EQ(!line.empty(), expected) << flag.name;
  }
}

TEST(PrintConfig, IsReadBackAsTheSameSettings) {
  const std::string text =
      printed({"--devices=2,", "--log-dir=a \"b\" \\ \x01 #c", "-m", "--grace", "1.5m", "--dry-run", "-v"},
              {{"PET_VIRTUAL_LOCAL_RANK", "no"}, {"PET_STANDALONE", ""}});
  const auto again = [&] {
    const auto read = [&](const std::string&) { return FileText{0, text}; };
    return parse_command_line({"lrun", "p"}, Environment(), read).request;
  }();
  EXPECT_EQ(text_of(again.devices.value), "2,");
  EXPECT_EQ(again.log_dir.value, "a \"b\" \\ \x01 #c");
  EXPECT_TRUE(again.module);
  EXPECT_EQ(again.grace.value, Duration(90'000));
  EXPECT_EQ(again.dry_run, DryRun::kText);
  EXPECT_EQ(again.verbosity, 1);
  EXPECT_FALSE(again.isolate_gpus);
}

TEST(PrintConfig, WhatTomlCannotHoldIsACommentAndTheRestIsReadBack) {
  const std::string text =
      printed({"--grace", "5s", "--env", "A=\xC3\xA9", "--env", "B=\x80"}, {{"LRUN_LOG_DIR", "/a\xFF\"b\xC3"}});
  EXPECT_THAT(line_with(text, "# log-dir"), mentions({R"(# log-dir = "/a\xff\"b\xc3")", "LRUN_LOG_DIR", "TOML"}));
  EXPECT_NE(text.find("\n#   \"B=\\x80\","), std::string::npos) << text;
  const auto read = [&](const std::string&) { return FileText{0, text}; };
  const LaunchRequest again = parse_command_line({"lrun", "p"}, Environment(), read).request;
  EXPECT_EQ(again.grace.value, Duration(5000));
  EXPECT_FALSE(again.log_dir.given());
  ASSERT_EQ(again.setup.environment.size(), 1U);
}

TEST(PrintConfig, NeedsNoProgramAndStillChecksValues) {
  EXPECT_EQ(refusal({"--print-config", "--seed=x"}),
            "lrun: error: '--seed x': not a whole number; allowed: 0 to 18446744073709551615\n"
            "lrun: hint: for example '--seed 0'\n");
}

}  // namespace
}  // namespace lrun::launcher
