#include "cluster/user_hosts.h"

#include <gtest/gtest.h>

#include <string>

#include "base/user_error.h"
#include "cluster/host_filter.h"
#include "support/mentions.h"

namespace lrun::launcher {
namespace {

std::vector<Host> listed(const std::string& text) { return parse_host_list(text, "-H " + text); }

std::string refusal(const auto& action) {
  try {
    (void)action();
  } catch (const UserError& error) {
    return std::string(error.what()) + " | " + error.hint();
  }
  return "";
}

TEST(HostList, TakesWhatPeopleWriteForOtherLaunchers) {
  EXPECT_EQ(listed("a"), (std::vector<Host>{{.name = "a"}}));
  EXPECT_EQ(listed("a:4,b:2"), (std::vector<Host>{{.name = "a", .slots = 4}, {.name = "b", .slots = 2}}));
  EXPECT_EQ(listed("a:4 b:2"), listed("a:4,b:2")) << "blanks are a slip that horovodrun does not forgive";
  EXPECT_EQ(listed("4*a"), listed("a:4"));
  EXPECT_EQ(listed("bob@a:4"), (std::vector<Host>{{.name = "a", .user = "bob", .slots = 4}}));
  EXPECT_EQ(listed("n[01-02,7]:4"), listed("n01:4,n02:4,n7:4"));
  EXPECT_EQ(
      listed("10.0.0.1:8,[fe80::1]:2,fe80::2"),
      (std::vector<Host>{{.name = "10.0.0.1", .slots = 8}, {.name = "fe80::1", .slots = 2}, {.name = "fe80::2"}}));
}

TEST(HostList, GivesAHostThatIsNamedAgainFurtherSlots) {
  EXPECT_EQ(listed("a,b,a"), listed("a:2,b:1")) << "where one is named for each worker, all are";
  EXPECT_EQ(listed("a,a,a,b"), listed("a:3,b:1"));
  EXPECT_EQ(listed("n[1-3],n2"), listed("n1:1,n2:2,n3:1"));
  EXPECT_EQ(listed("a:4,a:2"), listed("a:6"));
  EXPECT_EQ(listed("a,b"), (std::vector<Host>{{.name = "a"}, {.name = "b"}})) << "nothing is said";
  EXPECT_THAT(refusal([] { return listed("bob@a,a"); }), mentions({"'-H bob@a,a'", "'a'"}));
}

TEST(HostList, RefusesWhatIsNoHost) {
  for (const char* const text : {"a:x", "a:", "a:0", "0*a", "a:-1", "a:99999999", "@a", "-oProxyCommand=x", "a;b",
                                 "a/b", "n[1-", "n[2-1]", "2*a:3", ":4", "a$(b)", "\xff"}) {
    EXPECT_NE(refusal([&] { return listed(text); }), "") << text;
  }
  EXPECT_EQ(refusal([] { return listed("a:4,b:x"); }),
            "'-H a:4,b:x': 'b:x' has no number of workers from 1 to 65536 | write 'a:4' for host a with 4 workers, "
            "'bob@a:4' for user bob");
  EXPECT_THAT(refusal([] { return listed("node0:4:node1:4"); }),
              mentions({"commas stand between hosts, as in 'a:4,b:4'; a port of ssh is 'port=2222'"}));
  EXPECT_THAT(refusal([] { return listed("a,4"); }), mentions({"'4' is a number, not a host", "'a:4'"}));
  EXPECT_EQ(refusal([] { return listed(" , "); }), "'-H  , ' names no host | write '-H a:4,b:4'");
}

TEST(HostList, IsWrittenAsItIsRead) {
  EXPECT_EQ(listed("[fe80::1%eth0]:1,fe80::2%wlp2s0.1-x"),
            (std::vector<Host>{{.name = "fe80::1%eth0", .slots = 1}, {.name = "fe80::2%wlp2s0.1-x"}}));
  const std::vector<Host> hosts = listed("bob@a:4,[fe80::1]:2,c");
  EXPECT_EQ(text_of(hosts), "bob@a:4,[fe80::1]:2,c");
  EXPECT_EQ(listed(text_of(hosts)), hosts);
}

TEST(Hostfile, TakesEveryGrammar) {
  const char* const text =
      "# my hosts\n"
      "\n"
      "a slots=4            # Open MPI, DeepSpeed\r\n"
      "b slots=2 max_slots=8\n"
      "c:3\n"
      "2*d\n"
      "e user=bob port=2222\n"
      "n[1-2] cpu=2\n"
      "f\nf";
  EXPECT_EQ(parse_hostfile(text, "hosts"), (std::vector<Host>{{.name = "a", .slots = 4},
                                                              {.name = "b", .slots = 2},
                                                              {.name = "c", .slots = 3},
                                                              {.name = "d", .slots = 2},
                                                              {.name = "e", .user = "bob", .port = 2222, .slots = 1},
                                                              {.name = "n1", .slots = 2},
                                                              {.name = "n2", .slots = 2},
                                                              {.name = "f", .slots = 2}}));
}

TEST(Hostfile, CountsTheLinesOfPbs) {
  EXPECT_EQ(parse_hostfile("h1\nh1\nh1\nh2\n", "nodes"), listed("h1:3,h2:1"));
  EXPECT_EQ(parse_hostfile("h1\nh2\n", "nodes"), listed("h1,h2"));
}

TEST(Hostfile, NamesTheLineThatCannotBeRead) {
  EXPECT_EQ(refusal([] { return parse_hostfile("a\n\n# b\nc slots=x\n", "my hosts"); }),
            "my hosts:4: 'slots=x' has no number of workers from 1 to 65536 | write 'a:4' for host a with 4 workers, "
            "'bob@a:4' for user bob");
  EXPECT_THAT(refusal([] { return parse_hostfile("a slot=4", "hosts"); }),
              mentions({"1", "'slot=4'", "'slots=4'", "'user=bob'", "'port=2222'"}));
  EXPECT_THAT(refusal([] { return parse_hostfile("a 4", "hosts"); }),
              mentions({"1", "'4'", "'NAME=VALUE'", "for 4 workers write 'a slots=4'"}));
  EXPECT_THAT(refusal([] { return parse_hostfile("a, b", "hosts"); }), mentions({"a line has one host"}));
  EXPECT_THAT(refusal([] { return parse_hostfile("a:4 slots=4", "hosts"); }), mentions({"1", "'slots=4'"}));
  EXPECT_EQ(refusal([] { return parse_hostfile("# none\n", "hosts"); }),
            "hostfile 'hosts' names no host | did the command that writes it fail? it needs a line such as 'node0 "
            "slots=4' for each host");
  EXPECT_THAT(refusal([] { return parse_hostfile("\n", "hosts"); }), mentions({"hostfile 'hosts' is empty"}));
  EXPECT_EQ(refusal([] { return parse_hostfile(std::string_view("\x7f\0ELF", 5), "lrun"); }),
            "hostfile 'lrun' is not a text | write a line 'a slots=4' for each host");
}

TEST(HostFilter, KeepsOrDropsHostsAndDevices) {
  const std::vector<Host> hosts = listed("a:4,b:4,c:4");
  EXPECT_EQ(included(hosts, "c@a:0,2", "--include"),
            (std::vector<Host>{{.name = "a", .slots = 2, .devices = {0, 2}}, {.name = "c", .slots = 4}}));
  EXPECT_EQ(excluded(hosts, "a@b:1,2,3", "--exclude"),
            (std::vector<Host>{{.name = "b", .slots = 1, .devices = {0}}, {.name = "c", .slots = 4}}));
  EXPECT_EQ(excluded(hosts, "a:0,1,2,3", "--exclude"), listed("b:4,c:4")) << "no device is left of a";
}

TEST(HostFilter, RefusesWhatIsNotThere) {
  const std::vector<Host> hosts = listed("node1:4,node2:4");
  EXPECT_EQ(refusal([&] { return included(hosts, "nod1", "--include nod1"); }),
            "'--include nod1': 'nod1' is not one of the hosts | did you mean 'node1'?");
  EXPECT_EQ(refusal([&] { return included(hosts, "node1:4", "--include node1:4"); }),
            "'--include node1:4': host 'node1' has 4 devices | they are numbered from 0 to 3");
  EXPECT_THAT(refusal([&] { return excluded(hosts, "node1@node2", "--exclude node1@node2"); }),
              mentions({"'--exclude node1@node2'"}));
  for (const char* const text : {"", "@", "node1:", "node1:x", "node1:0,0", "node1@node1"}) {
    EXPECT_NE(refusal([&] { return included(hosts, text, "--include"); }), "") << text;
  }
  EXPECT_NE(refusal([&] { return excluded(listed("a"), "a:0", "--exclude"); }), "");
}

}  // namespace
}  // namespace lrun::launcher
