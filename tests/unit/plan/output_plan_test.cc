#include "plan/output_plan.h"

#include <gtest/gtest.h>

#include "unit/plan/planning.h"

namespace lrun::launcher {
namespace {

Setting<RankStreams> streams(const std::string& text) { return {*parse_rank_streams(text), Source::kFlag, "-r"}; }

OutputPlan decide(const OutputRequest& request, Compat compat = Compat::kLrun, const std::string& log_dir = "",
                  const Environment& environment = Environment()) {
  return decide_output(request, personality_of(compat), log_dir, environment);
}

/// 'pipe file console', 'inherited', 'file', 'nowhere' or 'terminal'.
std::string route(const OutputPlan& plan, int local_rank, LogStream stream = LogStream::kOut) {
  WorkerPlan worker;
  worker.rank = worker.local_rank = local_rank;
  const StreamRoute route = route_of(plan, worker, stream);
  switch (route.way) {
    case StreamRoute::Way::kInherited:
      return "inherited";
    case StreamRoute::Way::kFile:
      return "file";
    case StreamRoute::Way::kNowhere:
      return "nowhere";
    case StreamRoute::Way::kTerminal:
      return "terminal";
    case StreamRoute::Way::kCaptured:
      break;
  }
  return std::string("pipe") + (route.file ? " file" : "") + (route.console ? " console" : "");
}

TEST(OutputPlan, WarnsOfAPrefixThatAShellHasEmptied) {
  for (const char* const text : {"[] ", "(): ", "[rank ] ", "Rank:"})
    EXPECT_NE(warn_about_emptied_prefix(text), "") << text;
  for (const char* const text :
       {"", "[${rank}] ", "[$rank] ", "> ", "job7: ", "ranker: ", "frank: ", "[rank${local_rank}]"}) {
    EXPECT_EQ(warn_about_emptied_prefix(text), "") << text;
  }
  EXPECT_EQ(warn_about_emptied_prefix("{rank}: "),
            "the prefix '{rank}: ' is that of all ranks: write '${rank}' for '{rank}'");
}

TEST(OutputPlan, LrunTakesEverythingOver) {
  const OutputPlan plan = decide({});
  EXPECT_EQ(route(plan, 0), "pipe file console");
  EXPECT_EQ(route(plan, 7, LogStream::kErr), "pipe file console");
  EXPECT_EQ(plan.prefix_template, "");
  EXPECT_EQ(route(decide({}, Compat::kLrun, "/dev/null"), 0), "pipe console");
}

TEST(OutputPlan, TorchrunLeavesTheConsoleToTheWorkers) {
  EXPECT_EQ(route(decide({}, Compat::kTorchrun), 0), "inherited");
}

TEST(OutputPlan, RedirectAndTeeMeanTheSameInBothPersonalities) {
  for (const Compat compat : {Compat::kLrun, Compat::kTorchrun}) {
    const OutputPlan plan = decide({.redirects = streams("0:2,1:0"), .tee = streams("0:1,1:2")}, compat);
    EXPECT_EQ(route(plan, 0, LogStream::kOut), "pipe file console");
    EXPECT_EQ(route(plan, 0, LogStream::kErr), "file");
    EXPECT_EQ(route(plan, 1, LogStream::kOut), "inherited");
    EXPECT_EQ(route(plan, 1, LogStream::kErr), "pipe file console");
    EXPECT_EQ(plan.prefix_template, "[${role_name}${local_rank}]:");
  }
}

TEST(OutputPlan, AStreamThatBothNameIsTeed) {
  EXPECT_EQ(route(decide({.redirects = streams("3"), .tee = streams("1")}), 0), "pipe file console");
  EXPECT_EQ(route(decide({.redirects = streams("3"), .tee = streams("1")}), 0, LogStream::kErr), "file");
}

TEST(OutputPlan, WithoutFilesARedirectHidesNothing) {
  EXPECT_EQ(route(decide({.redirects = streams("3")}, Compat::kTorchrun, "/dev/null"), 0), "inherited");
  EXPECT_EQ(route(decide({.tee = streams("3")}, Compat::kTorchrun, "/dev/null"), 0), "pipe console");
}

TEST(OutputPlan, CapturesStreamsThatLrunMustSee) {
  EXPECT_EQ(route(decide({.redirects = streams("3"), .max_file_bytes = 10'000}), 0), "pipe file");
  EXPECT_EQ(route(decide({.redirects = streams("3"), .pty = true}), 0), "pipe file");
  EXPECT_EQ(route(decide({.pty = true}, Compat::kTorchrun), 0), "pipe console");
}

TEST(OutputPlan, TheRanksFilterHidesTheOthers) {
  EXPECT_EQ(route(decide({.local_ranks = {1}}), 0), "pipe file");
  EXPECT_EQ(route(decide({.local_ranks = {1}}), 1), "pipe file console");
  EXPECT_EQ(route(decide({.local_ranks = {1}}, Compat::kTorchrun), 0), "nowhere");
  EXPECT_EQ(route(decide({.local_ranks = {1}}, Compat::kTorchrun), 1), "inherited");
  EXPECT_EQ(route(decide({.redirects = streams("3"), .local_ranks = {1}}), 0), "file") << "redirects are unchanged";
  EXPECT_EQ(route(decide({.tee = streams("3"), .local_ranks = {1}}), 0), "pipe file");
}

TEST(OutputPlan, AConsoleModeHoldsForWhatRedirectsLeave) {
  const Setting<ConsoleMode> prefix{ConsoleMode::kPrefix, Source::kFlag, "--output"};
  const OutputPlan plan = decide({.console = prefix, .redirects = streams("1")});
  EXPECT_EQ(route(plan, 0), "file");
  EXPECT_EQ(route(plan, 0, LogStream::kErr), "pipe console") << "with -r only named streams have files";
  EXPECT_EQ(route(decide({.console = prefix}, Compat::kTorchrun), 0), "pipe console");
}

TEST(OutputPlan, ConsoleModesShowWhatTheySay) {
  const auto with = [](ConsoleMode mode, const std::string& log_dir = "") {
    return decide({.console = {mode, Source::kFlag, "--output"}}, Compat::kLrun, log_dir);
  };
  EXPECT_EQ(route(with(ConsoleMode::kQuiet), 0), "pipe file");
  EXPECT_EQ(route(with(ConsoleMode::kQuiet, "/dev/null"), 0), "pipe") << "the verdict shows the last words";
  EXPECT_EQ(route(with(ConsoleMode::kRank0), 0), "pipe file console");
  EXPECT_EQ(route(with(ConsoleMode::kRank0), 1), "pipe file");
  EXPECT_EQ(route(with(ConsoleMode::kRaw), 1), "pipe file console");
  EXPECT_EQ(route(with(ConsoleMode::kRaw, "/dev/null"), 1), "inherited") << "nobody needs its lines";
}

TEST(OutputPlan, APrefixTemplateComesFromTheFlagElseFromTheVariable) {
  const Environment variable = environment_with({{"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", "<${rank}>"}});
  EXPECT_EQ(decide({}, Compat::kLrun, "", variable).prefix_template, "<${rank}>");
  EXPECT_EQ(decide({.prefix_template = "mine "}, Compat::kLrun, "", variable).prefix_template, "mine ");
  const Environment empty = environment_with({{"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", ""}});
  EXPECT_EQ(decide({.tee = streams("1")}, Compat::kLrun, "", empty).prefix_template, "[${role_name}${local_rank}]:");
}

TEST(OutputPlan, APrefixIsRefusedWhereLinesHaveNone) {
  EXPECT_THROW((void)decide({.console = {ConsoleMode::kRaw, Source::kFlag, "--output"}, .prefix_template = "x"}),
               UserError);
  EXPECT_EQ(
      decide({.console = {ConsoleMode::kPrefix, Source::kFlag, "--output"}, .prefix_template = "x"}).prefix_template,
      "x");
}

}  // namespace
}  // namespace lrun::launcher
