// The store as the client of Python's torch sees it. LRUN_TEST_PYTHON names a Python that has torch.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "support/store_server_thread.h"

namespace lrun::launcher {
namespace {

struct Result {
  int status = 0;
  std::string output;
};

Result run_shell(const std::string& command) {
  Result result;
  std::FILE* pipe = ::popen((command + " 2>&1").c_str(), "re");
  if (pipe == nullptr) return {-1, "popen failed"};
  std::array<char, 4096> bytes{};
  while (const std::size_t count = std::fread(bytes.data(), 1, bytes.size(), pipe)) {
    result.output.append(bytes.data(), count);
  }
  result.status = ::pclose(pipe);
  return result;
}

TEST(StoreOfPython, GivesTorchItsAnswers) {
  const char* asked = std::getenv("LRUN_TEST_PYTHON");
  const std::string python = asked != nullptr ? asked : "python3";
  const Result torch = run_shell("'" + python + "' -c 'import torch.distributed'");
  if (torch.status != 0 && asked == nullptr) {
    GTEST_SKIP() << "python3 has no torch; LRUN_TEST_PYTHON may name one that has:\n" << torch.output;
  }
  ASSERT_EQ(torch.status, 0) << "LRUN_TEST_PYTHON has no torch:\n" << torch.output;
  StoreServerThread server;
  const Result client =
      run_shell("'" + python + "' '" LRUN_TEST_SOURCE "/store_python_client.py' " + std::to_string(server.port()));
  EXPECT_EQ(client.status, 0) << client.output;
  EXPECT_NE(client.output.find("all as expected"), std::string::npos) << client.output;
  EXPECT_TRUE(server.log().empty()) << server.log().front();
}

}  // namespace
}  // namespace lrun::launcher
