#include "inspect/ask_helpers.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace lrun::launcher {
namespace {

ToolOutcome outcome(int code, const std::string& output, const std::string& errors) {
  return {.status = ExitStatus{ExitStatus::Kind::kExited, code}, .output = output, .errors = errors};
}

PythonFacts python_after(const ToolOutcome& outcome) {
  PythonFacts python;
  read_python_outcome(outcome, python);
  return python;
}

PeerFacts peer_after(const ToolOutcome& outcome) {
  PeerFacts peer;
  read_login_outcome(outcome, peer);
  return peer;
}

TEST(PythonOutcome, IsAnAnswerOrTheReasonForNone) {
  const PythonFacts known = python_after(outcome(0, R"({"version": "3.11.2", "path": "/usr/bin/python3"})", ""));
  EXPECT_EQ(known.answer, PythonFacts::Answer::kGiven);
  EXPECT_EQ(known.version, "3.11.2");
  const PythonFacts broken =
      python_after(outcome(1, "", "Fatal\nModuleNotFoundError: No module named 'encodings'\n\n"));
  EXPECT_EQ(broken.answer, PythonFacts::Answer::kFailed);
  EXPECT_EQ(broken.error, "ModuleNotFoundError: No module named 'encodings'");
  EXPECT_EQ(python_after(outcome(0, "Usage: tool", "")).error, "Usage: tool") << "a program that is no Python";
  EXPECT_EQ(python_after({.timed_out = true}).error, "no answer within 10s");
  EXPECT_EQ(python_after({.error_number = ENOEXEC}).error, "Exec format error");
}

TEST(LoginOutcome, HasTheWordsOfSsh) {
  using Login = PeerFacts::Login;
  EXPECT_EQ(peer_after(outcome(0, "", "Authorized users only\n")).login, Login::kWorks);
  const PeerFacts denied =
      peer_after(outcome(255, "", "Authorized users only\nbob@a: Permission denied (publickey).\r\n"));
  EXPECT_EQ(denied.login, Login::kFails);
  EXPECT_EQ(denied.login_error, "bob@a: Permission denied (publickey).");
  EXPECT_EQ(peer_after(outcome(1, "This account is currently not available.\n", "")).login_error,
            "This account is currently not available.");
  EXPECT_EQ(peer_after(outcome(255, "",
                               "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.\n"))
                .login_error,
            "its host key has changed");
  EXPECT_EQ(peer_after({.timed_out = true}).login_error, "no answer within 12s");
  EXPECT_EQ(peer_after(outcome(255, "", "")).login_error, "ssh failed without a message");
}

}  // namespace
}  // namespace lrun::launcher
