#include "remote/ssh.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace lrun::launcher {
namespace {

std::string line(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

TEST(Ssh, StartsLrunWithoutAQuestionAndGivesUpOnSilentHosts) {
  EXPECT_EQ(
      line(ssh_command({"ssh", "-p", "22"}, {.name = "a", .user = "bob", .port = 2222}, "/opt/my lrun", kNodeWord)),
      "ssh -p 22 -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=2 -o ServerAliveCountMax=3 "
      "-o ControlMaster=no -o ControlPath=none -o ClearAllForwardings=yes -o RemoteCommand=none -T "
      "-p 2222 -l bob a exec '/opt/my lrun' @node");
}

TEST(Ssh, LogsInAsARunDoes) {
  EXPECT_EQ(
      line(ssh_login_command({"ssh"}, {.name = "a", .user = "bob"})),
      "ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=2 -o ServerAliveCountMax=3 "
      "-o ControlMaster=no -o ControlPath=none -o ClearAllForwardings=yes -o RemoteCommand=none -T -l bob a true");
}

TEST(Ssh, KnowsHintsForItsOwnMessages) {
  EXPECT_NE(ssh_advice("bob@a: Permission denied (publickey).").find("'ssh-copy-id HOST'"), std::string_view::npos);
  EXPECT_NE(ssh_advice(kHostKeyChanged).find("ssh-keygen -R NAME"), std::string_view::npos);
  EXPECT_EQ(ssh_advice("no answer in 30s"), "");
}

TEST(Ssh, FailuresAreToldInItsOwnWords) {
  EXPECT_EQ(ssh_failure_text(255, "Permission denied (publickey).", "/lrun"), "Permission denied (publickey).");
  EXPECT_EQ(ssh_failure_text(127, "bash: line 1: /lrun: No such file or directory", "/lrun"),
            "no '/lrun' on that host");
  EXPECT_EQ(ssh_failure_text(126, "", "/lrun"), "'/lrun' cannot be executed there");
  EXPECT_EQ(ssh_failure_text(255, "", "/lrun"), "ssh ended with status 255");
  EXPECT_EQ(ssh_failure_text(139, "", "/lrun"), "'/lrun' died of SIGSEGV there");
}

TEST(Ssh, SaysThatTheKeyOfAHostHasChanged) {
  const std::string changed = ssh_last_words(
      "@@@@@@@@@\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\nHost key verification failed.\r\n");
  EXPECT_EQ(changed, "its host key has changed");
  EXPECT_NE(ssh_advice(changed).find("ssh-keygen -R"), std::string_view::npos);
  EXPECT_EQ(ssh_last_words("Banner\nHost key verification failed.\r\n"), "Host key verification failed.");
}

TEST(Ssh, CarriesTheEnvironmentButForWhatIsAHostsOwn) {
  const std::vector<std::string> variables{"HOME=/home/bob",         "NCCL_DEBUG=INFO", "PATH=/opt/bin:/bin",
                                           "SSH_AUTH_SOCK=/x",       "SLURM_JOB_ID=1",  "TMPDIR=/tmp/bob",
                                           "LRUN_JOB_SECRET=hidden", "HOME2=1"};
  EXPECT_EQ(carried_environment(variables, {}),
            (std::vector<std::string>{"NCCL_DEBUG=INFO", "PATH=/opt/bin:/bin", "HOME2=1"}));
  const std::vector<std::string> wanted = carried_environment(variables, {"TMPDIR", "LRUN_JOB_SECRET"});
  EXPECT_NE(std::find(wanted.begin(), wanted.end(), "TMPDIR=/tmp/bob"), wanted.end());
  EXPECT_EQ(std::find(wanted.begin(), wanted.end(), "LRUN_JOB_SECRET=hidden"), wanted.end());
}

TEST(Ssh, CarriesWhatMakesTheCommandModule) {
  const std::vector<std::string> variables{"BASH_ENV=/opt/lmod/init/bash",
                                           "BASH_FUNC_module%%=() {  eval $(lmod $@)\n}", "BASH_FUNC_ml()=() {  :\n}"};
  EXPECT_EQ(carried_environment(variables, {}), variables);
}

}  // namespace
}  // namespace lrun::launcher
