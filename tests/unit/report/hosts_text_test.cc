#include "report/hosts_text.h"

#include <gtest/gtest.h>

namespace lrun::launcher {
namespace {

TEST(HostsText, IsOneTableWithTheReasons) {
  EXPECT_EQ(hosts_problem_text({{"h2", "ssh: connect to host h2 port 22: Connection refused"},
                                {"node10", "Permission denied (publickey)."}},
                               3, false),
            "lrun: error: 2 of 3 hosts cannot be used; nothing was started\n"
            "  | h2      ssh: connect to host h2 port 22: Connection refused\n"
            "  | node10  Permission denied (publickey).\n"
            "lrun: hint: start an ssh server there, or name its port in ~/.ssh/config\n");
  EXPECT_EQ(hosts_problem_text({{"a", "no answer in 30s"}}, 2, false),
            "lrun: error: 1 of 2 hosts cannot be used; nothing was started\n"
            "  | a  no answer in 30s\n"
            "lrun: hint: 'ssh HOST true' has to work; '--ssh' names another command or options\n");
}

TEST(HostsText, DoesNotAdviseACopyWhereTheCopyFailed) {
  const std::string hint = "hint: set TMPDIR on that host to a directory that has room and whose programs";
  for (const char* const why :
       {"the copy of lrun in '/tmp/tmp.1' cannot be executed",
        "mktemp: failed to create directory via template '/x/tmp.XX': No such file or directory"}) {
    EXPECT_NE(hosts_problem_text({{"a", why}}, 1, false).find(hint), std::string::npos) << why;
  }
}

TEST(HostsText, AdvisesNoFolderWhereTheHostCannotRunAnyCopy) {
  const std::string glibc = "the copy of lrun in '/tmp/tmp.1' cannot be started: that host lacks glibc";
  EXPECT_NE(hosts_problem_text({{"a", glibc}}, 1, false).find("hint: lrun needs glibc"), std::string::npos);
  const std::string older =
      "/tmp/tmp.1/lrun: /lib/libc.so.6: version `GLIBC_2.34' not found (required by /tmp/tmp.1/lrun)";
  EXPECT_NE(hosts_problem_text({{"a", older}}, 1, false).find("hint: that host's glibc is older"), std::string::npos);
  const std::string processor = "its processor is aarch64, and this lrun is for x86_64";
  EXPECT_NE(hosts_problem_text({{"a", processor}}, 1, false).find("hint: install lrun for that"), std::string::npos);
}

TEST(HostsText, SpeaksOfTheProgramThatReachesTheHostsWhereItIsMissing) {
  EXPECT_EQ(hosts_problem_text({{"a", "cannot execute 'nossh': No such file or directory"}}, 1, false),
            "lrun: error: 1 of 1 hosts cannot be used; nothing was started\n"
            "  | a  cannot execute 'nossh': No such file or directory\n"
            "lrun: hint: hosts are reached with ssh: install it here, or name another command with '--ssh'\n");
}

TEST(HostsText, TellsOnceOfAllThatAreLostTogether) {
  EXPECT_EQ(lost_hosts_text({"h3"}, "ssh died of SIGKILL"), "the connection to h3 was lost: ssh died of SIGKILL");
  EXPECT_EQ(lost_hosts_text({"h1", "h33"}, "no route"), "the connections to h1 and h33 were lost: no route");
  EXPECT_EQ(lost_hosts_text({"a", "b", "c", "d", "e", "f"}, "x"),
            "the connections to a, b, c, d and 2 more were lost: x");
}

TEST(HostsText, NeverMovesTheCursor) {
  EXPECT_NE(hosts_problem_text({{"a", "\x1b[2Jgone"}}, 1, false).find("\\x1b[2Jgone"), std::string::npos);
}

}  // namespace
}  // namespace lrun::launcher
