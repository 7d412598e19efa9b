#include "cluster/machine_identity.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "base/child_query.h"
#include "base/fd.h"

namespace lrun::launcher {
namespace {

TEST(MachineIdentity, IsTheSameForAllProcessesOfAMachine) {
  EXPECT_FALSE(machine_identity().empty());
  EXPECT_EQ(query_in_child([] { return machine_identity(); }, Duration(60'000)).text, machine_identity());
}

/// The output of a process that is the first of a namespace; empty: no namespace can be made.
std::string identity_in_container() {
  if (::unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) return {};
  const Pipe pipe = make_pipe();
  const pid_t first = ::fork();
  if (first == 0) ::_exit(write_all(pipe.write.get(), machine_identity()));
  ::waitpid(first, nullptr, 0);
  char text[256] = {};
  const ssize_t count = ::read(pipe.read.get(), text, sizeof text);
  return {text, static_cast<std::size_t>(std::max<ssize_t>(0, count))};
}

TEST(MachineIdentity, IsAnotherInAContainerWithProcessesOfItsOwn) {
  const ChildAnswer there = query_in_child(identity_in_container, Duration(60'000));
  ASSERT_EQ(there.end, ChildAnswer::End::kAnswered);
  if (there.text.empty()) GTEST_SKIP() << "no namespace can be made";
  EXPECT_NE(there.text, machine_identity());
}

}  // namespace
}  // namespace lrun::launcher
