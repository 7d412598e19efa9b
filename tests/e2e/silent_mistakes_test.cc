// Mistakes that would go unnoticed: lrun reports each once, with the command line to type.
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/lrun_process.h"
#include "support/mentions.h"

namespace lrun::test {
namespace {

/// A Python script in a folder of its own, from which lrun is started.
class Script {
 public:
  explicit Script(const std::string& text) { std::ofstream(folder_.path() / "train.py") << text; }

  [[nodiscard]] LrunProcess::Options options() const {
    return {.before_exec = [path = folder_.path().string()] { (void)!::chdir(path.c_str()); }};
  }

 private:
  TemporaryFolder folder_;
};

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

void on_one_cpu() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  (void)::sched_getaffinity(0, sizeof mask, &mask);
  std::size_t first = 0;
  while (first < std::size_t{CPU_SETSIZE} && !CPU_ISSET(first, &mask)) ++first;
  CPU_ZERO(&mask);
  CPU_SET(first, &mask);
  (void)::sched_setaffinity(0, sizeof mask, &mask);
}

TEST(StrategyOfLiblrun, OfAPythonProgramIsRefusedBeforeAnythingStarts) {
  const Script script("open('started', 'w')\n");
  LrunProcess lrun({"--devices", "2", "--strategy", "dp", "train.py"}, script.options());
  EXPECT_EQ(lrun.wait().code, 125);
  EXPECT_EQ(
      lrun.err(),
      "lrun: error: '--strategy dp' is carried out by liblrun, and 'train.py' is a Python program: it would train "
      "on one device\n"
      "lrun: hint: use '--strategy ddp' and DistributedDataParallel, or '--liblrun' for one that starts a program "
      "of liblrun\n");
  LrunProcess again({"--devices", "2", "--strategy", "dp", "--liblrun", "train.py"}, script.options());
  EXPECT_EQ(again.wait().code, 0) << again.err();
  EXPECT_EQ(again.err(), "");
}

TEST(StrategyOfLiblrun, OfAPythonProgramIsRefusedBeforeOtherHostsAreReached) {
  LrunProcess lrun({"-H", "h1:2,h2:2", "--ssh", "/nonexistent", "--strategy", "ddp2", "train.py"});
  EXPECT_EQ(lrun.wait().code, 125);
  EXPECT_EQ(count_of(lrun.err(), "\n"), 2U) << lrun.err();
  EXPECT_NE(lrun.err().find("it would train on one device of each node"), std::string::npos) << lrun.err();
}

TEST(StrategyOfLiblrun, ThatNobodyCarriedOutIsTold) {
  LrunProcess lrun({"--devices", "2", "--strategy", "ddp_sharded", "sh", "-c", ":"});
  EXPECT_EQ(lrun.wait().code, 0);
  EXPECT_EQ(
      lrun.err(),
      "lrun: warning: '--strategy ddp_sharded' is carried out by liblrun, and no step of it was seen: the program "
      "may have trained without sharding; with '--liblrun' nobody looks\n");
  LrunProcess failed({"--devices", "2", "--strategy", "ddp_sharded", "false"});
  EXPECT_EQ(failed.wait().code, 1);
  EXPECT_EQ(failed.err().find("no step of it"), std::string::npos) << failed.err();
}

TEST(OptionBehindTheProgram, IsToldWhereTheProgramDoesNotKnowIt) {
  const Script unaware("import os; print(os.environ['WORLD_SIZE'])\n");
  LrunProcess lrun({"train.py", "--devices", "4"}, unaware.options());
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_THAT(lrun.err(), mentions({"lrun: warning: '--devices 4'", "'train.py'", "'lrun --devices 4 train.py …'"}));
  const Script knows("import sys\nassert sys.argv[1] == '--devices'\n");
  LrunProcess silent({"train.py", "--devices", "4"}, knows.options());
  EXPECT_EQ(silent.wait().code, 0) << silent.err();
  EXPECT_EQ(silent.err(), "");
}

TEST(OptionBehindTheProgram, ThatTheProgramRefusesIsHintedAtWithTheVerdict) {
  const Script parses("import argparse\nargparse.ArgumentParser().parse_args()\n");
  LrunProcess lrun({"train.py", "--max-restarts", "3"}, parses.options());
  EXPECT_EQ(lrun.wait().code, 2) << lrun.err();
  EXPECT_THAT(lrun.err(),
              mentions({"lrun: hint: for lrun's own '--max-restarts'", "'lrun --max-restarts … train.py'"}));
}

TEST(ProgramOfTheSystem, ThatIsAVerbElsewhereIsTold) {
  LrunProcess lrun({"ps"});
  EXPECT_EQ(lrun.wait().code, 125) << lrun.err();
  EXPECT_THAT(lrun.err(), mentions({"lrun: error: 'ps' is no verb of lrun", "'lrun status' shows what runs"}));
}

TEST(EmptyScript, IsToldAndSoIsASecondProgram) {
  const Script nothing("");
  LrunProcess lrun({"train.py", ":", "-x", "A"}, nothing.options());
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_THAT(lrun.err(), mentions({"lrun: warning: 'train.py' is empty",
                                    "lrun: warning: ':' and all behind it are arguments of 'train.py'"}));
}

TEST(SecondProgram, WithAnOptionOfMpirunIsRefused) {
  LrunProcess same({"-np", "1", "true", ":", "-np", "2", "true"});
  EXPECT_EQ(same.wait().code, 125);
  EXPECT_EQ(same.err(),
            "lrun: error: ':' separates programs in mpirun, and a run of lrun has one\n"
            "lrun: hint: for 3 workers write 'lrun -n 3 true'\n");
  LrunProcess other({"true", ":", "-n", "2", "false"});
  EXPECT_EQ(other.wait().code, 125);
  EXPECT_THAT(other.err(), mentions({"lrun: hint: start one program", "RANK"}));
}

TEST(ProgramOfThisFolder, IsFoundAgainWhereWorkersStartInAnotherOne) {
  const Script script("");
  LrunProcess lrun({"--chdir", "/usr", "train.py"}, script.options());
  EXPECT_EQ(lrun.wait().code, 127);
  EXPECT_THAT(lrun.err(), mentions({"it is looked for in '/usr', because of '--chdir'", "'$PWD/train.py'"}));
}

TEST(ProgramThatSpawnsItsRanks, IsTold) {
  const std::string text = "import os\nif 'X' in os.environ: mp.spawn(main, nprocs=2)\n";
  const Script spawns(text);
  LrunProcess two({"--devices", "2", "train.py"}, spawns.options());
  EXPECT_EQ(two.wait().code, 0) << two.err();
  EXPECT_THAT(two.err(), mentions({"lrun: warning: 'train.py' starts its ranks itself, with 'mp.spawn'"}));
  LrunProcess one({"train.py"}, spawns.options());
  EXPECT_EQ(one.wait().code, 0) << one.err();
  EXPECT_THAT(one.err(), mentions({"with 'mp.spawn': run it without lrun"}))
      << "its rank 0 would look for lrun's store";
  const Script takes_rank(text + "rank = os.environ['RANK']\n");
  LrunProcess both({"--devices", "2", "train.py"}, takes_rank.options());
  EXPECT_EQ(both.wait().code, 0) << both.err();
  EXPECT_EQ(both.err(), "");
}

TEST(ProgramThatGivesEachRankTheSameNumber, IsTold) {
  const std::string call = "init_process_group(\n    'gloo', timeout=f(1, 2), rank = 0)";
  const Script fixed("import os\nif 'X' in os.environ: " + call + "\n");
  LrunProcess two({"--devices", "2", "train.py"}, fixed.options());
  EXPECT_EQ(two.wait().code, 0) << two.err();
  EXPECT_THAT(two.err(), mentions({"lrun: warning: 'train.py' gives init_process_group() a rank", "all 2 workers"}));
  const Script chooses("import os\nif 'RANK' not in os.environ: " + call + "\n");
  const Script variable("import os\nif 'X' in os.environ: init_process_group('gloo', rank=r, world_size=16)\n");
  for (const Script* const script : {&chooses, &variable}) {
    LrunProcess silent({"--devices", "2", "train.py"}, script->options());
    EXPECT_EQ(silent.wait().code, 0) << silent.err();
    EXPECT_EQ(silent.err(), "");
  }
}

TEST(NestedRun, IsToldByRank0OfTheOuterOne) {
  const std::vector<std::string> four{"--devices", "4", "--output=raw", LRUN_PROGRAM};
  std::vector<std::string> plain = four;
  plain.insert(plain.end(), {"sh", "-c", ":"});
  LrunProcess lrun(plain);
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_EQ(count_of(lrun.err(), "lrun: warning: rank 0 of run '"), 1U) << lrun.err();
  EXPECT_EQ(count_of(lrun.err(), "\n"), 1U) << lrun.err();
  std::vector<std::string> meant = four;
  meant.insert(meant.end(), {"--nested", "sh", "-c", ":"});
  LrunProcess silent(meant);
  EXPECT_EQ(silent.wait().code, 0);
  EXPECT_EQ(silent.err(), "");
}

TEST(CrowdedCpus, AreToldOnce) {
  LrunProcess workers({"--devices", "5", "true"}, {.before_exec = on_one_cpu});
  EXPECT_EQ(workers.wait().code, 0);
  EXPECT_THAT(workers.err(), mentions({"lrun: warning: 5 workers", "1 usable CPU", "'--devices 1'"}));
  EXPECT_EQ(count_of(workers.err(), "\n"), 1U) << workers.err();
  LrunProcess threads({"--devices", "2", "true"},
                      {.environment = {{"OMP_NUM_THREADS", "64"}}, .before_exec = on_one_cpu});
  EXPECT_EQ(threads.wait().code, 0);
  EXPECT_EQ(threads.err(),
            "lrun: warning: OMP_NUM_THREADS=64 in 2 workers makes 128 threads on 1 usable CPU, which will mostly wait "
            "for each other; OMP_NUM_THREADS=1 is a fair share\n");
}

TEST(ReplacedVariables, AreToldWhereNothingReadsThem) {
  LrunProcess lrun({"--devices", "2", "true"}, {.environment = {{"RANK", "3"}, {"MASTER_ADDR", "10.1.1.1"}}});
  EXPECT_EQ(lrun.wait().code, 0);
  EXPECT_EQ(lrun.err(),
            "lrun: note: this run has 2 workers, with its own values in place of 'MASTER_ADDR=10.1.1.1' and 'RANK=3'; "
            "'--rdzv-endpoint' and '--node-rank' set them\n");
}

TEST(ReplacedVariables, AreToldWithTheOptionOfEachWhereTheyDescribeAnotherWorld) {
  const std::string begin = "lrun: note: this run has 1 worker, with its own values in place of ";
  LrunProcess lrun({"--devices", "1", "true"}, {.environment = {{"RANK", "1"}, {"WORLD_SIZE", "2"}}});
  EXPECT_EQ(lrun.wait().code, 0);
  EXPECT_EQ(lrun.err(),
            "lrun: warning: RANK and WORLD_SIZE are not read, so that this is rank 0 of 1: '-n 2' starts 2 ranks here "
            "at once; for one on each of 2 hosts: '--num-nodes 2 --node-rank 1 --rdzv-endpoint HOST:29500'\n");
  LrunProcess number({"true"}, {.environment = {{"WORLD_SIZE", "2"}}});
  EXPECT_EQ(number.wait().code, 0);
  EXPECT_EQ(number.err(), begin + "'WORLD_SIZE=2'; '-n' sets it\n");
  LrunProcess port({"true"}, {.environment = {{"MASTER_PORT", "29600"}}});
  EXPECT_EQ(port.wait().code, 0);
  EXPECT_EQ(port.err(), begin + "'MASTER_PORT=29600'; '--master-port' sets it\n");
  LrunProcess local({"true"}, {.environment = {{"LOCAL_RANK", "1"}}});
  EXPECT_EQ(local.wait().code, 0);
  EXPECT_EQ(local.err(), begin + "'LOCAL_RANK=1'\n");
  LrunProcess same({"--devices", "2", "true"}, {.environment = {{"WORLD_SIZE", "2"}}});
  EXPECT_EQ(same.wait().code, 0);
  EXPECT_EQ(same.err(), "");
}

TEST(IncompleteJob, OfAPodIsToldWithWhatIsMissing) {
  LrunProcess pod(
      {"true"},
      {.environment = {
           {"KUBERNETES_SERVICE_HOST", "10.0.0.1"}, {"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "head"}}});
  EXPECT_EQ(pod.wait().code, 0);
  EXPECT_EQ(
      pod.err(),
      "lrun: warning: this pod runs alone, with 1 worker: WORLD_SIZE is 2, but MASTER_PORT is missing, without which "
      "pods do not meet\n");
  LrunProcess service({"true"},
                      {.environment = {{"KUBERNETES_SERVICE_HOST", "10.0.0.1"}, {"MASTER_PORT", "tcp://10.0.0.2:80"}}});
  EXPECT_EQ(service.wait().code, 0);
  EXPECT_EQ(service.err(), "") << "Kubernetes sets it for a service of that name";
}

TEST(IncompleteJob, WithAListOfHostsThatIsNotThereIsTold) {
  LrunProcess lrun({"true"}, {.environment = {{"PBS_NODEFILE", "/nonexistent"}}});
  EXPECT_EQ(lrun.wait().code, 0);
  EXPECT_EQ(
      lrun.err(),
      "lrun: warning: 'PBS_NODEFILE=/nonexistent' cannot be read: this run has one node; '--num-nodes 1' says that "
      "it is meant\n");
  LrunProcess meant({"--num_nodes", "1", "true"}, {.environment = {{"PBS_NODEFILE", "/nonexistent"}}});
  EXPECT_EQ(meant.wait().code, 0);
  EXPECT_EQ(meant.err(), "");
}

TEST(OptionGivenTwice, IsToldWithBothValues) {
  LrunProcess lrun({"--devices", "1", "--output=raw", "--num_gpus=2", "sh", "-c", "echo $WORLD_SIZE"});
  EXPECT_EQ(lrun.wait().code, 0);
  EXPECT_EQ(lrun.err(), "lrun: warning: '--devices 1' and '--num_gpus 2' are both given: the last one counts\n");
  EXPECT_EQ(lrun.out(), "2\n2\n");
}

TEST(OptionGivenTwice, IsToldByTheFirstTaskOfAStep) {
  const auto err_of_task = [](const std::string& rank) {
    LrunProcess lrun({"--dry-run", "--grace=1", "--grace=2", "true"},
                     {.environment = {{"SLURM_JOB_ID", "12"},
                                      {"SLURM_STEP_ID", "0"},
                                      {"SLURM_STEP_NODELIST", "n[1-2]"},
                                      {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"},
                                      {"SLURM_NODEID", rank},
                                      {"SLURM_PROCID", rank}}});
    EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
    return lrun.err();
  };
  EXPECT_EQ(count_of(err_of_task("0"), "both given"), 1U);
  EXPECT_EQ(count_of(err_of_task("1"), "both given"), 0U);
}

/// lrun through a link of this name.
LrunProcess::Options called(const TemporaryFolder& folder, const std::string& name) {
  const std::filesystem::path link = folder.path() / name;
  std::filesystem::create_symlink(LRUN_PROGRAM, link);
  return {.program = link.string()};
}

TEST(Torchrun, TakesRanksWithBlanksAndOnlyFullNamesOfSignals) {
  const TemporaryFolder folder;
  LrunProcess lrun({"--nproc-per-node", "3", "--no-python", "--log-dir", folder.path().string(), "--tee", "3",
                    "--local-ranks-filter", "0, 2", "--signals-to-handle", "SIGTERM,10", "sh", "-c", "echo $RANK"},
                   called(folder, "torchrun"));
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_NE(lrun.err().find("'10' of --signals-to-handle cannot be handled and is left out"), std::string::npos)
      << lrun.err();
  EXPECT_EQ(count_of(lrun.out(), "]:"), 2U) << lrun.out();
}

TEST(Torchrun, RefusesWhatItsNamesakeDoesNotHave) {
  const TemporaryFolder folder;
  LrunProcess lrun({"--use-env", "--no-python", "true"}, called(folder, "torchrun"));
  EXPECT_EQ(lrun.wait().code, 125);
  EXPECT_EQ(lrun.err(),
            "lrun: error: '--use-env' is an option of torch.distributed.launch, and torchrun has none of the name\n"
            "lrun: hint: leave it out: nothing is put before the arguments of PROGRAM\n");
}

}  // namespace
}  // namespace lrun::test
