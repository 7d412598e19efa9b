#include "cli/flags.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

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
      EXPECT_TRUE(!flag.hint.empty() || flag.neutral_value == "*") << flag.name << " has no way out";
    }
    EXPECT_FALSE(flag.value == ValueKind::kOptional && flag.choices.empty()) << flag.name;
  }
}

TEST(FlagTable, VariablesAreMadeFromTheName) {
  std::map<std::string_view, std::string> variables;
  for (const Flag& flag : flag_table()) variables[flag.name] = lrun_variable_of(flag);
  EXPECT_EQ(variables["num-nodes"], "LRUN_NUM_NODES");
  EXPECT_EQ(variables["log-dir"], "LRUN_LOG_DIR");
  EXPECT_EQ(variables["help"], "");
}

TEST(FlagTable, TorchrunsVariablesAreMadeFromItsFirstLongName) {
  // The options of torchrun that read a variable, by the first long name that its parser gives them.
  const std::set<std::string> torchruns{"nnodes",
                                        "nproc-per-node",
                                        "rdzv-backend",
                                        "rdzv-endpoint",
                                        "rdzv-id",
                                        "rdzv-conf",
                                        "standalone",
                                        "max-restarts",
                                        "monitor-interval",
                                        "start-method",
                                        "event-log-handler",
                                        "role",
                                        "module",
                                        "no-python",
                                        "run-path",
                                        "log-dir",
                                        "redirects",
                                        "tee",
                                        "local-ranks-filter",
                                        "duplicate-stdout-filters",
                                        "duplicate-stderr-filters",
                                        "node-rank",
                                        "master-addr",
                                        "master-port",
                                        "local-addr",
                                        "log-line-prefix-template",
                                        "signals-to-handle",
                                        "shutdown-timeout",
                                        "virtual-local-rank"};
  std::set<std::string> read;
  for (const Flag& flag : flag_table()) {
    const std::string variable = torchrun_variable_of(flag);
    if (variable.empty()) continue;
    std::string name;  // 'PET_RDZV_ID' is made from 'rdzv-id'
    for (const char letter : variable.substr(4)) {
      name += letter == '_' ? '-' : static_cast<char>(letter - 'A' + 'a');
    }
    const auto names = long_names_of(flag);
    EXPECT_TRUE(std::any_of(names.begin(), names.end(),
                            [&](const std::string& own) { return folded_name(own) == "--" + name; }))
        << flag.name << " reads " << variable;
    EXPECT_TRUE(read.insert(name).second) << variable << " is read by two flags";
  }
  EXPECT_EQ(read, torchruns);
}

}  // namespace
}  // namespace lrun::launcher
