#include "support/golden.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

namespace lrun::test {
namespace {

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  if (from.empty()) return;
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace

void expect_golden(const std::string& name, const std::string& text) {
  const std::filesystem::path path = std::filesystem::path(LRUN_GOLDEN) / name;
  if (std::getenv("LRUN_UPDATE_GOLDEN") != nullptr) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  std::ifstream file(path);
  std::stringstream golden;
  golden << file.rdbuf();
  EXPECT_EQ(text, golden.str()) << "differs from " << path;
}

std::string without_particulars(std::string text, const LrunProcess& lrun,
                                const std::vector<std::pair<std::string, std::string>>& names) {
  for (const auto& [from, to] : names) replace_all(text, from, to);
  replace_all(text, lrun.state().string(), "STATE");
  replace_all(text, "'" + std::filesystem::current_path().string() + "'", "'FOLDER'");
  replace_all(text, " on " + host_name(), " on HOST");
  static const std::vector<std::pair<std::regex, std::string>> kPatterns{
      {std::regex(R"(\d{8}-\d{6}-[a-z0-9]{6})"), "RUN"},
      {std::regex(R"((\bpid[ :]+)\d+)"), "$1PID"},
      {std::regex(R"(\bafter \d+\.\d+s)"), "after TIME"},
      {std::regex(R"(\bran for \d+\.\d+s)"), "ran for TIME"},
      {std::regex(R"(\bafter \d+ms)"), "after TIME"},
      {std::regex(R"(\b0x[0-9a-f]+)"), "ADDRESS"},
      {std::regex(R"(\S*fault_worker\.cc:\d+)"), "fault_worker.cc:LINE"},
      {std::regex(R"((^|\n)(\[\d+\]|  \|) *[~^]+(?=\n))"), ""},  // newer versions of Python mark more
  };
  for (const auto& [pattern, replacement] : kPatterns) text = std::regex_replace(text, pattern, replacement);
  return text;
}

std::string transcript(LrunProcess& lrun, const std::vector<std::pair<std::string, std::string>>& names) {
  const LrunEnd end = lrun.wait();
  const std::string how =
      end.exited ? "exit code " + std::to_string(end.code) : "died of signal " + std::to_string(end.signal_number);
  return how + "\n--- stderr\n" + without_particulars(lrun.err(), lrun, names) + "--- stdout\n" +
         without_particulars(lrun.out(), lrun, names);
}

}  // namespace lrun::test
