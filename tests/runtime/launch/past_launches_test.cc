#include "runtime/launch/past_launches.h"

#include <gtest/gtest.h>
#include <lrun/error.h>

#include <stdexcept>

namespace lrun {
namespace {

TEST(PastLaunches, AreRepeatedAsTheyWent) {
  PastLaunches here;
  EXPECT_EQ(here.next(), 1);
  EXPECT_EQ(here.record(true, [] { return "bytes"; }), "bytes");
  EXPECT_THROW(here.record(true, []() -> std::string { throw WorkersFailed("rank 3 died", 3, 139); }), WorkersFailed);
  EXPECT_THROW(here.record(true, []() -> std::string { throw Unsupported("no fork"); }), Unsupported);
  EXPECT_THROW(here.record(true, []() -> std::string { throw BadEnvironment("no port"); }), BadEnvironment);
  EXPECT_THROW(here.record(true, []() -> std::string { throw std::runtime_error("no memory"); }), std::runtime_error);
  EXPECT_EQ(here.next(), 6);

  PastLaunches in_rank;
  EXPECT_EQ(in_rank.replay(here.all()), "bytes");
  try {
    in_rank.replay(here.all());
    FAIL() << "the failure was forgotten";
  } catch (const WorkersFailed& error) {
    EXPECT_STREQ(error.what(), "rank 3 died");
    EXPECT_EQ(error.rank(), 3);
    EXPECT_EQ(error.exit_code(), 139);
  }
  EXPECT_THROW(in_rank.replay(here.all()), Unsupported);
  EXPECT_THROW(in_rank.replay(here.all()), BadEnvironment);
  EXPECT_THROW(in_rank.replay(here.all()), Error);
  EXPECT_EQ(in_rank.next(), 6);
}

TEST(PastLaunches, AreOnlyCountedWhereNobodyRepeatsThem) {
  PastLaunches here;
  EXPECT_EQ(here.record(false, [] { return "bytes"; }), "bytes");
  EXPECT_EQ(here.next(), 2);
  EXPECT_TRUE(here.all().empty());
}

}  // namespace
}  // namespace lrun
