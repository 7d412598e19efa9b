#pragma once

#include <gtest/gtest.h>

#include <cerrno>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/user_error.h"
#include "cli/parse_args.h"
#include "report/diagnostics.h"
#include "support/mentions.h"

namespace lrun::launcher {

using Variables = std::map<std::string, std::string, std::less<>>;

inline FileText no_files(const std::string& /*path*/) { return {ENOENT, {}}; }

/// The whole answer to `lrun words...`.
inline ParsedCommandLine parse(std::vector<std::string> words, Variables variables = {},
                               const std::string& command = "lrun") {
  words.insert(words.begin(), command);
  return parse_command_line(words, Environment(std::move(variables)), no_files);
}

inline LaunchRequest request_of(std::vector<std::string> words, Variables variables = {},
                                const std::string& command = "lrun") {
  return parse(std::move(words), std::move(variables), command).request;
}

/// The output on stderr for `lrun words...`, or '(accepted)'.
inline std::string refusal(std::vector<std::string> words, Variables variables = {},
                           const std::string& command = "lrun") {
  try {
    (void)parse(std::move(words), std::move(variables), command);
  } catch (const UserError& error) {
    return render(error, false);
  }
  return "(accepted)";
}

/// A value given by an option of this name.
template <class T>
Setting<T> by_flag(T value, const std::string& origin) {
  return {std::move(value), Source::kFlag, origin};
}

/// An option of one word, and the facts that its error has to have.
struct RefusalCase {
  const char* option;
  Facts facts;
};

inline void expect_refused(std::initializer_list<RefusalCase> cases) {
  for (const RefusalCase& expected : cases) {
    EXPECT_THAT(refusal({expected.option, "./train"}), HasFacts(expected.facts));
  }
}

}  // namespace lrun::launcher
