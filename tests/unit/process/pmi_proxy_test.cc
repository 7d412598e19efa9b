#include "process/pmi_proxy.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <optional>
#include <string>

#include "base/fd.h"

namespace lrun {
namespace {

TEST(PmiProxy, IsTheProcessThatMadeTheSocket) {
  int ends[2] = {};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const Fd here(ends[0]);
  EXPECT_EQ(pmi_proxy(std::to_string(ends[1])), ::getpid());
  ::close(ends[1]);
  EXPECT_EQ(pmi_proxy(std::to_string(ends[1])), std::nullopt) << "closed";
  const Pipe pipe = make_pipe();
  EXPECT_EQ(pmi_proxy(std::to_string(pipe.read.get())), std::nullopt) << "no socket";
  for (const char* const text : {"", "-1", "x", "99999999999"}) EXPECT_EQ(pmi_proxy(text), std::nullopt) << text;
}

}  // namespace
}  // namespace lrun
