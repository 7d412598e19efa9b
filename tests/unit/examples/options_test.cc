#include "options.h"

#include <gtest/gtest.h>

#include <vector>

#include "errors.h"
#include "example_files.h"

namespace fashion_mnist {
namespace {

Options parse(const std::vector<const char*>& arguments) { return parse_options(arguments); }

std::string option_refusal(const std::vector<const char*>& arguments) {
  return text_of<UsageError>([&] { parse(arguments); });
}

TEST(Options, HaveDefaults) { EXPECT_EQ(parse({}), Options{}); }

TEST(Options, TakeTheValueAsNextWordOrAfterAnEqualsSign) {
  Options expected;
  expected.data = "/d";
  expected.epochs = 7;
  expected.batch_size = 32;
  expected.learning_rate = 0.5;
  expected.seed = 18446744073709551615u;
  expected.checkpoint = "c=d";
  expected.resume = true;
  expected.limit = 100;
  EXPECT_EQ(parse({"--data", "/d", "--epochs=7", "--batch-size", "32", "--learning-rate=5e-1", "--seed",
                   "18446744073709551615", "--checkpoint=c=d", "--resume", "--limit", "100"}),
            expected);
}

TEST(Options, RefuseABadValueInOneLine) {
  EXPECT_EQ(option_refusal({"--epochs", "0"}), "bad value '0' of --epochs: a whole number of at least 1");
  EXPECT_EQ(option_refusal({"--batch-size=12x"}), "bad value '12x' of --batch-size: a whole number of at least 1");
  EXPECT_EQ(option_refusal({"--limit", "99999999999999999999"}),
            "bad value '99999999999999999999' of --limit: a whole number of at least 1");
  EXPECT_EQ(option_refusal({"--seed", "-1"}), "bad value '-1' of --seed: a whole number of at least 0");
  EXPECT_EQ(option_refusal({"--data="}), "bad value '' of --data: a path");
}

TEST(Options, RefuseALearningRateThatIsNoPositiveNumber) {
  for (const char* text : {"0", "-1", "nan", "inf", "-inf", "1e999", ""}) {
    EXPECT_EQ(option_refusal({"--learning-rate", text}),
              "bad value '" + std::string(text) + "' of --learning-rate: a number above 0");
  }
}

TEST(Options, RefuseWhatTheyDoNotKnow) {
  EXPECT_EQ(option_refusal({"--epoch", "3"}), "unknown option '--epoch' (-h shows all)");
  EXPECT_EQ(option_refusal({"3"}), "unexpected argument '3' (-h shows all)");
  EXPECT_EQ(option_refusal({"--epochs"}), "--epochs needs a value: N");
  EXPECT_EQ(option_refusal({"--resume=1", "--checkpoint=c"}), "--resume takes no value");
  EXPECT_EQ(option_refusal({"--resume"}), "--resume needs --checkpoint FILE");
}

TEST(Options, HelpNamesThemAll) {
  EXPECT_TRUE(parse({"-h"}).help);
  for (const char* name : {"--data DIR", "--epochs N", "--batch-size N", "--learning-rate X", "--seed N",
                           "--checkpoint FILE", "--resume", "--limit N", "-h"}) {
    EXPECT_NE(help_text().find(name), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace fashion_mnist
