#include "verdict/collective_name.h"

#include <gtest/gtest.h>

namespace lrun {
namespace {

TEST(CollectiveName, IsFoundInAnySpelling) {
  EXPECT_EQ(collective_name("all_reduce"), "all_reduce");
  EXPECT_EQ(collective_name("ncclAllReduce"), "all_reduce");
  EXPECT_EQ(collective_name("c10d::ProcessGroup::allreduce(std::vector<at::Tensor>&, c10d::AllreduceOptions const&)"),
            "all_reduce");
  EXPECT_EQ(collective_name("void (anonymous namespace)::Ring<float>::reduce_scatter(int)"), "reduce_scatter");
  EXPECT_EQ(collective_name("gloo::broadcast(gloo::BroadcastOptions&)"), "broadcast");
  for (const char* const name : {"main", "broadcast_tensors", "at::native::reduce(int)", "all_reduce_hook", "??", ""}) {
    EXPECT_EQ(collective_name(name), "") << name;
  }
}

TEST(CollectiveName, IsFoundAmongOtherWords) {
  EXPECT_EQ(collective_in("WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1)"), "all_reduce");
  EXPECT_EQ(collective_in("OpType=_ALLGATHER_BASE"), "all_gather");
  EXPECT_EQ(collective_in("    dist.all_reduce(t)"), "all_reduce");
  EXPECT_EQ(collective_in("rank 1 (pid 7) left the group before barrier #5"), "barrier");
  EXPECT_EQ(collective_in("  File \"distributed_c10d.py\", line 1838, in init_process_group"), kInitProcessGroup);
  for (const char* const text :
       {"", "all_reduce_hook failed", "Connection closed by peer [127.0.0.1]:4242", "(((", "é"}) {
    EXPECT_EQ(collective_in(text), "") << text;
  }
}

}  // namespace
}  // namespace lrun
