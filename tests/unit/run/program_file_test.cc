#include "run/program_file.h"

#include <gtest/gtest.h>

namespace lrun::launcher {
namespace {

using namespace std::string_literals;

TEST(ProgramFile, OfMpiIsNamedWithItsLibrary) {
  const std::string head =
      "\x7f"
      "ELF\0\0libstdc++.so.6\0libmpi.so.40\0libc.so.6\0"s;
  EXPECT_EQ(warning_about_head("./m", head, 2),
            "'./m' uses MPI (libmpi.so.40), which lrun does not start: each worker is rank 0 of 1; write 'mpirun -np 2 "
            "./m'");
  EXPECT_EQ(warning_about_head("./m", head, 1), "") << "one rank is rank 0 of 1 in any case";
  EXPECT_EQ(warning_about_head("./m",
                               "\x7f"
                               "ELF\0notlibmpi.so.40\0"s,
                               2),
            "");
  EXPECT_EQ(warning_about_head("./m",
                               "\x7f"
                               "ELF\0libmpi.so\0"s,
                               2),
            "")
      << "a text of the program";
  EXPECT_EQ(warning_about_head("./m", "#!/bin/sh\n\0libmpi.so.40\0"s, 2), "");
  EXPECT_NE(warning_about_head("./m",
                               "\x7f"
                               "ELF\0libmpi.so.40"s,
                               2),
            "")
      << "the end of what was read";
}

TEST(ProgramFile, OfASchedulerIsABatchScript) {
  EXPECT_EQ(warning_about_head("./job.sh", "#!/bin/bash\n#SBATCH --nodes=2\nsrun python3 train.py\n", 1),
            "'./job.sh' is a batch script: 'sbatch ./job.sh' submits it, and lrun stands in it in the place of srun");
  EXPECT_EQ(warning_about_head("./job.sh", "#!/bin/bash\n# SBATCH is not used\n", 2), "");
}

TEST(ProgramFile, IsNotReadWhereAManagerStartedLrun) {
  Environment of_job;
  of_job.set("SLURM_JOB_ID", "7");
  EXPECT_EQ(warn_of_file("/proc/self/exe", "/proc/self/exe", 2, of_job), "");
  EXPECT_EQ(warn_of_file("./job.sh", "/no/such/file", 2, Environment()), "");
}

}  // namespace
}  // namespace lrun::launcher
