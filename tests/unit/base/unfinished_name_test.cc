#include "base/unfinished_name.h"

#include <gtest/gtest.h>

namespace lrun {
namespace {

TEST(UnfinishedName, IsOneThatProgramsRename) {
  for (const char* const name : {"x.tmp", "x.ckpt.tmp-0", "tmp-checkpoint-5", "tmp", "x.TMP", "x.new", "x.part",
                                 "x.partial", "x.Partial", "x.incomplete", "x.lock", ".x.swp", "x~", "x.temp"}) {
    EXPECT_TRUE(is_unfinished_name(name)) << name;
  }
}

TEST(UnfinishedName, IsNotThatOfAFileThatIsThere) {
  for (const char* const name : {"x.pt", "checkpoint-5", "newest", "new", "x.new.pt", "parts", "x.partial.pt", "temp-1",
                                 "attempt-2", "lock.json", "~x", ".hidden", "", "x.t.m.p"}) {
    EXPECT_FALSE(is_unfinished_name(name)) << name;
  }
}

}  // namespace
}  // namespace lrun
