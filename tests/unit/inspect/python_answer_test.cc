#include "inspect/python_answer.h"

#include <gtest/gtest.h>

#include <string>

namespace lrun::launcher {
namespace {

TEST(PythonAnswer, IsTheLastLine) {
  const auto facts = parse_python_answer(
      "sitecustomize says hello\n"
      R"({"version": "3.11.2", "path": "/usr/bin/python3", "torch": "2.6.0+cu124", "cuda": "12.4", "nccl": "2.21.5"})"
      "\n");
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->version, "3.11.2");
  EXPECT_EQ(facts->path, "/usr/bin/python3");
  EXPECT_EQ(facts->torch, (TorchFacts{"2.6.0+cu124", "12.4", "2.21.5", ""}));
}

TEST(PythonAnswer, HasNoTorchWhereThereIsNone) {
  const auto facts = parse_python_answer(R"({"version": "3.12.0", "path": ""})");
  ASSERT_TRUE(facts);
  EXPECT_FALSE(facts->torch);
}

TEST(PythonAnswer, NamesTheNcclThatIsMissing) {
  const auto facts = parse_python_answer(
      R"({"version": "3.12.0", "torch": "2.6.0", "cuda": "12.4", "nccl": "", "missing_nccl": "nvidia-nccl-cu12==2.21.5"})");
  ASSERT_TRUE(facts && facts->torch);
  EXPECT_EQ(facts->torch->missing_nccl, "nvidia-nccl-cu12==2.21.5");
}

TEST(PythonAnswer, MayBeAnything) {
  for (const char* const text : {"", "\n\n", "Python 3.11.2", "[1]", "{", "{\"version\": 3}",
                                 "{\"path\": \"/usr/bin/python3\"}", "\"\\ud800\"", "\xff"}) {
    EXPECT_FALSE(parse_python_answer(text)) << text;
  }
  EXPECT_FALSE(parse_python_answer(std::string(60'000, '['))) << "deep";
  const auto odd = parse_python_answer(R"({"version": "3.11.2", "torch": 2.6, "cuda": ["12"]})");
  ASSERT_TRUE(odd);
  EXPECT_FALSE(odd->torch);
  const auto wide = parse_python_answer("{\"version\": \"" + std::string(50'000, '3') + "\"}");
  ASSERT_TRUE(wide);
  EXPECT_LT(wide->version.size(), 300U);
}

}  // namespace
}  // namespace lrun::launcher
