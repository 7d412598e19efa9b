#include <gtest/gtest.h>

#include "unit/cli/parse_support.h"

namespace lrun::launcher {
namespace {

using Texts = std::vector<std::string>;

OutputRequest output_of(std::vector<std::string> words, Variables variables = {}) {
  words.emplace_back("p");
  return request_of(std::move(words), std::move(variables)).output;
}

TEST(OutputFlags, StreamsAreReadFromFlagAndVariable) {
  EXPECT_EQ(output_of({"-r", "3"}).redirects.value.all, 3U);
  EXPECT_EQ(output_of({"-t0:1,10:2"}).tee.value, *parse_rank_streams("0:1,10:2"));
  EXPECT_EQ(output_of({}, {{"PET_REDIRECTS", "1"}}).redirects.origin, "PET_REDIRECTS");
  EXPECT_EQ(output_of({"-r", "0", "--tee=0"}), OutputRequest{}) << "0 asks for nothing";
}

TEST(OutputFlags, UnreadableStreamsAreRefused) {
  EXPECT_EQ(refusal({"--redirects=4", "p"}),
            "lrun: error: '--redirects 4': not a choice of streams; allowed: 0 none, 1 stdout, 2 stderr, 3 both, or by "
            "local rank, as in 0:3,1:1\nlrun: hint: for example '--redirects 3'\n");
  for (const char* const text : {"-1", "0:4", "all", "0:1;1:2", ",0:1", ""}) {
    EXPECT_NE(refusal({std::string("--tee=") + text, "p"}), "(accepted)") << text;
  }
}

TEST(OutputFlags, AreNotWhatTheirLettersMeanElsewhere) {
  EXPECT_THAT(refusal({"-t", "10", "p"}), mentions({"'-t' is '--tee'", "'--timeout 10m'"}));
  EXPECT_THAT(refusal({"-r", "5", "p"}), mentions({"'-r' is '--redirects'", "'--max-restarts 5'"}));
  EXPECT_THAT(refusal({"-tag-output", "p"}), mentions({"did you mean '--output prefix'?"}));
  EXPECT_THAT(refusal({"--log-dir", "s3://bucket/logs", "p"}), mentions({"a URL, and no folder of this host"}));
  EXPECT_THAT(refusal({"--log-dir=~/logs", "p"}), mentions({"a shell replaces '~' only where a word begins with it"}));
}

TEST(OutputFlags, AnEmptyPrefixIsNoWayToHaveNone) {
  EXPECT_THAT(refusal({"--log-line-prefix-template", "", "p"}), mentions({"the prefix is empty", "'--output raw'"}));
  EXPECT_EQ(output_of({}, {{"PET_LOG_LINE_PREFIX_TEMPLATE", ""}}), OutputRequest{});
  EXPECT_EQ(request_of({"--log-line-prefix-template", "", "p"}, {}, "torchrun").output, OutputRequest{});
}

TEST(OutputFlags, RanksToShowAreNumbers) {
  EXPECT_EQ(output_of({"--local-ranks-filter=0,12"}).local_ranks, (std::vector<int>{0, 12}));
  EXPECT_EQ(output_of({"--local-ranks-filter=0, 2 ,\t3"}).local_ranks, (std::vector<int>{0, 2, 3}))
      << "as Python's int()";
  EXPECT_EQ(output_of({"--local-ranks-filter="}).local_ranks, std::vector<int>{});
  EXPECT_EQ(refusal({"--local-ranks-filter=0,x", "p"}),
            "lrun: error: '--local-ranks-filter 0,x': not a list of local ranks; allowed: numbers with commas\n"
            "lrun: hint: for example '--local-ranks-filter 0,1,2'\n");
  for (const char* const text : {"0,", ",0", "-1", "0 1", "1.5"}) {
    EXPECT_NE(refusal({std::string("--local-ranks-filter=") + text, "p"}), "(accepted)") << text;
  }
}

TEST(OutputFlags, TwoCommasInAFilterAreOneOfTheText) {
  EXPECT_EQ(output_of({"--duplicate-stdout-filters=apple,pear"}).stdout_filters, (Texts{"apple", "pear"}));
  EXPECT_EQ(output_of({"--duplicate-stderr-filters=a,,b"}).stderr_filters, Texts{"a,b"});
  EXPECT_EQ(output_of({"--duplicate-stderr-filters=a,,b,c"}).stderr_filters, (Texts{"a,b", "c"}));
  EXPECT_EQ(output_of({"--duplicate-stderr-filters=,,"}).stderr_filters, Texts{","});
  EXPECT_EQ(output_of({"--duplicate-stderr-filters="}).stderr_filters, Texts{});
}

TEST(OutputFlags, TheConsoleModeIsOneOfItsWords) {
  EXPECT_EQ(output_of({"--output=raw"}).console.value, ConsoleMode::kRaw);
  EXPECT_EQ(output_of({"--output=fold"}).console.value, ConsoleMode::kFold);
  EXPECT_EQ(output_of({"--output", "Rank0"}).console.value, ConsoleMode::kRank0);
  EXPECT_EQ(output_of({}, {{"LRUN_OUTPUT", "quiet"}}).console.value, ConsoleMode::kQuiet);
  EXPECT_FALSE(output_of({}).console.given());
  EXPECT_TRUE(output_of({"--timestamps"}).timestamps);
  EXPECT_THAT(refusal({"--output=quite", "p"}), mentions({"'--output quite'", "did you mean 'quiet'?"}));
}

TEST(OutputFlags, SizesOfLogFilesHaveUnits) {
  EXPECT_EQ(output_of({"--log-max-bytes=8192"}).max_file_bytes, 8192U);
  EXPECT_EQ(output_of({"--log-max-bytes", "64k"}).max_file_bytes, 65'536U);
  EXPECT_EQ(output_of({}, {{"LRUN_LOG_MAX_BYTES", "2G"}}).max_file_bytes, 2'147'483'648U);
  EXPECT_EQ(output_of({"--log-max-bytes=0"}).max_file_bytes, 0U);
  EXPECT_EQ(refusal({"--log-max-bytes=1K", "p"}),
            "lrun: error: '--log-max-bytes 1K': not a size of log files; allowed: 0 for no limit, or 4K and more, with "
            "K, M, G or T\nlrun: hint: for example '--log-max-bytes 100M'\n");
  for (const char* const text : {"", "M", "1P", "-1", "1.5M", "99999999999G"}) {
    EXPECT_NE(refusal({std::string("--log-max-bytes=") + text, "p"}), "(accepted)") << text;
  }
}

TEST(OutputFlags, ANameForRoleAndRun) {
  EXPECT_EQ(request_of({"--role=trainer", "p"}).role, "trainer");
  EXPECT_EQ(request_of({"p"}, {{"PET_RDZV_ID", "exp7"}}).rdzv_id, "exp7");
  EXPECT_EQ(request_of({"--role", "", "p"}).role, "") << "as torchx writes it";
}

TEST(OutputFlags, RefuseAnEmptyLogFolder) {
  expect_refused({
      {"--log-dir=", {"'--log-dir='", "'/dev/null'"}},
  });
}

}  // namespace
}  // namespace lrun::launcher
