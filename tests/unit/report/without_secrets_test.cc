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
  EXPECT_EQ(without_secrets(R"({"password": "a\"b", "n": 1})"), R"({"password": "***", "n": 1})") << "a quote in it";
  EXPECT_EQ(without_secrets("password: sesame"), "password: ***");
  EXPECT_EQ(without_secrets("{user: a, password: sesame}"), "{user: a, password: ***}");
  EXPECT_EQ(without_secrets("Authorization: Basic dXNlcjpw"), "Authorization: Basic ***");
  EXPECT_EQ(without_secrets(R"("authorization": "token abc")"), R"("authorization": "token ***")");
}

TEST(WithoutSecrets, KnowsNamesHoweverTheirWordsAreJoined) {
  for (const char* name : {"PGPASSWORD", "clientSecret", "dbPassword", "hfToken", "AccountKey", "SharedAccessKey",
                           "MYSQL_PWD", "DB_PASS", "dbPass", "SSHPASS", "--storage.secretKey"}) {
    EXPECT_EQ(without_secrets(name + std::string("=x;Host=y")), name + std::string("=***;Host=y"));
  }
  for (const char* name : {"X-Amz-Signature", "sig", "storageKey"}) {
    const std::string before = std::string("GET http://h/x?n=1&") + name + "=";
    EXPECT_EQ(without_secrets(before + "0123456789abcdef0123&v=2"), before + "***&v=2");
  }
}

TEST(WithoutSecrets, HidesWordsOfWellKnownForms) {
  for (const char* begin : {"sk-", "hf_", "ghp_", "github_pat_", "glpat-", "AKIA"}) {
    const std::string key = begin + std::string("ABCDEFGHIJ0123456789");
    EXPECT_EQ(without_secrets("login with '" + key + "' failed"), "login with '***' failed") << begin;
  }
  for (const char* begin : {"hf_", "ghp_", "npm_", "AKIA"}) {
    EXPECT_EQ(without_secrets(begin + std::string(34, 'x')), "***") << "without a digit";
  }
  EXPECT_EQ(without_secrets("https://user:pass@host/path"), "https://***@host/path");
  EXPECT_EQ(without_secrets("https://u:p@ss@host/path"), "https://***@host/path");
}

TEST(WithoutSecrets, LeavesOtherTextsAsTheyAre) {
  for (const char* text : {"",
                           "--max-tokens 4096",
                           "--tokenizer gpt2",
                           "num_tokens=512",
                           "KeyError: 'token'",
                           "--key 3",
                           "a.sort(key=len)",
                           "ValueError: invalid token: expected a number",
                           "--token",
                           "--token --lr 1",
                           "token=",
                           "hf_model",
                           "sk-learn",
                           "http://host:80/a@b",
                           "rank 1 failed: KeyError: 'api_key' at a.py:3",
                           "\xff\x80=1",
                           "--token-file path",
                           "tokens=512",
                           "passes: 3",
                           "compass=north",
                           "forward_pass: 12.3",
                           "PWD=/home/a",
                           "OLDPWD=/home/b",
                           "sig=11",
                           "signature: (a: int)",
                           "unexpected token: end",
                           "password: it is too short",
                           "Basic usage",
                           "hf_text_generation_inference_model",
                           "npm_config_registry_of_this"}) {
    EXPECT_EQ(without_secrets(std::string_view(text)), text);
  }
}

TEST(WithoutSecrets, HidesWholeWordsOfACommandLine) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(without_secrets(Words{"train.py", "--api-key", "two words", "--token=a b", "--lr", "1", "--token", "--x"}),
            (Words{"train.py", "--api-key", "***", "--token=***", "--lr", "1", "--token", "--x"}));
  EXPECT_EQ(without_secrets(Words{"sh", "-c", "API_KEY=x ./train"}), (Words{"sh", "-c", "API_KEY=***"}))
      << "its value may have blanks";
  EXPECT_EQ(without_secrets(Words{"a", "--wandb-key", "0123456789abcdef/+=", "--storage-key", "3", "--sig", "x"}),
            (Words{"a", "--wandb-key", "***", "--storage-key", "3", "--sig", "x"}))
      << "a key, and words that are none";
}

}  // namespace
}  // namespace lrun::launcher
