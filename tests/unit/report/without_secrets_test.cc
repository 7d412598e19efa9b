#include "report/without_secrets.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lrun::launcher {
namespace {

TEST(WithoutSecrets, HidesTheValueBehindANameThatTellsOfIt) {
  EXPECT_EQ(without_secrets("train.py --api-key X --lr 1"), "train.py --api-key *** --lr 1");
  EXPECT_EQ(without_secrets("train.py --token=X"), "train.py --token=***");
  EXPECT_EQ(without_secrets("AWS_SECRET_ACCESS_KEY=X/y+z= python3"), "AWS_SECRET_ACCESS_KEY=*** python3");
  EXPECT_EQ(without_secrets("AWS_SECRET=X HF_TOKEN=Y"), "AWS_SECRET=*** HF_TOKEN=***");
  EXPECT_EQ(without_secrets("--password 'two words' --x"), "--password '***' --x");
  EXPECT_EQ(without_secrets(R"({"api_key": "abc", 'password': 'x'})"), R"({"api_key": "***", 'password': '***'})");
  EXPECT_EQ(without_secrets("password: hunter2"), "password: ***");
  EXPECT_EQ(without_secrets("Authorization: Bearer abcdef"), "Authorization: Bearer ***");
  EXPECT_EQ(without_secrets("GET http://h/x?token=abc&n=1"), "GET http://h/x?token=***&n=1");
  EXPECT_EQ(without_secrets("login(key=\"0123456789abcdef\")"), "login(key=\"***\")");
}

TEST(WithoutSecrets, HidesWordsOfWellKnownForms) {
  for (const char* begin : {"sk-", "hf_", "ghp_", "github_pat_", "glpat-", "AKIA"}) {
    const std::string key = begin + std::string("ABCDEFGHIJ0123456789");
    EXPECT_EQ(without_secrets("login with '" + key + "' failed"), "login with '***' failed") << begin;
  }
  EXPECT_EQ(without_secrets("https://user:pass@host/path"), "https://***@host/path");
}

TEST(WithoutSecrets, LeavesOtherTextsAsTheyAre) {
  for (const char* text : {"", "--max-tokens 4096", "--tokenizer gpt2", "num_tokens=512", "KeyError: 'token'",
                           "--key 3", "a.sort(key=len)", "ValueError: invalid token: expected a number", "--token",
                           "--token --lr 1", "token=", "hf_model", "sk-learn", "http://host:80/a@b",
                           "rank 1 failed: KeyError: 'api_key' at a.py:3", "\xff\x80=1", "--token-file path"}) {
    EXPECT_EQ(without_secrets(std::string_view(text)), text);
  }
}

TEST(WithoutSecrets, HidesWholeWordsOfACommandLine) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(without_secrets(Words{"train.py", "--api-key", "two words", "--token=a b", "--lr", "1", "--token", "--x"}),
            (Words{"train.py", "--api-key", "***", "--token=***", "--lr", "1", "--token", "--x"}));
  EXPECT_EQ(without_secrets(Words{"sh", "-c", "API_KEY=x ./train"}), (Words{"sh", "-c", "API_KEY=***"}))
      << "its value may have blanks";
}

}  // namespace
}  // namespace lrun::launcher
