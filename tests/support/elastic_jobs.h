#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <initializer_list>

#include "support/launchers_of_a_job.h"

namespace lrun::test {

/// Workers that print their rank and run until the test ends them.
class ElasticJobs : public ::testing::Test {
 protected:
  Words program() const {
    return shell("echo rank $RANK/$WORLD_SIZE of $GROUP_WORLD_SIZE count $TORCHELASTIC_RESTART_COUNT.; while [ ! -e " +
                 end_.string() + " ]; do sleep 0.1; done");
  }
  void end() const { std::ofstream(end_) << "end\n"; }

  TemporaryFolder folder_;
  const std::filesystem::path end_ = folder_.path() / "end";
};

/// Both launchers end well.
inline void expect_success(std::initializer_list<LrunProcess*> nodes) {
  for (LrunProcess* node : nodes) EXPECT_EQ(node->wait().code, 0) << node->err();
}

}  // namespace lrun::test
