#include <gtest/gtest.h>

#include <map>

#include "cli/flags.h"

namespace lrun::launcher {
namespace {

TEST(FlagTable, NoNameBelongsToTwoFlags) {
  std::map<std::string, std::string> owners;
  for (const Flag& flag : flag_table()) {
    std::vector<std::string> names;
    for (const std::string& name : long_names_of(flag)) names.push_back(folded_name(name));
    for (const std::string_view name : words_of(flag.short_names)) names.push_back("-" + std::string(name));
    for (const std::string& name : names) {
      const auto [entry, added] = owners.emplace(name, flag.name);
      EXPECT_TRUE(added) << name << " belongs to " << entry->second << " and to " << flag.name;
    }
  }
}

TEST(FlagTable, EveryRowCanBeActedOnAndExplained) {
  for (const Flag& flag : flag_table()) {
    EXPECT_EQ(flag.apply != nullptr, flag.action == FlagAction::kSetting) << flag.name;
    EXPECT_EQ(flag.placeholder.empty(), flag.value == ValueKind::kNone) << flag.name;
    if (in_this_version(flag)) {
      EXPECT_FALSE(flag.details.empty()) << flag.name;
      EXPECT_EQ(flag.details.back(), '.') << flag.name << ": --help is written in sentences";
    } else {
      EXPECT_TRUE(!flag.hint.empty() || flag.neutral_values == "*") << flag.name << " has no way out";
    }
    EXPECT_FALSE(flag.value == ValueKind::kOptional && flag.choices.empty()) << flag.name;
  }
}

TEST(FlagTable, VariablesAreMadeFromTheName) {
  std::map<std::string_view, std::string> variables;
  for (const Flag& flag : flag_table()) variables[flag.name] = lrun_variable_of(flag);
  EXPECT_EQ(variables["num_nodes"], "LRUN_NUM_NODES");
  EXPECT_EQ(variables["log-dir"], "LRUN_LOG_DIR");
  EXPECT_EQ(variables["help"], "");
}

TEST(FlagTable, TorchrunsVariablesAreMadeFromItsFirstLongName) {
  for (const Flag& flag : flag_table()) {
    if (flag.pet_variable.empty()) continue;
    bool found = false;
    for (const std::string& name : long_names_of(flag)) {
      std::string variable = "PET_";
      for (const char letter : name.substr(2)) {
        variable += letter == '-' || letter == '_' ? '_' : static_cast<char>(letter - 'a' + 'A');
      }
      found = found || variable == flag.pet_variable;
    }
    EXPECT_TRUE(found) << flag.name << " reads " << flag.pet_variable;
  }
}

}  // namespace
}  // namespace lrun::launcher
