#include "cluster/kubernetes_job.h"

#include <gtest/gtest.h>

#include "support/mentions.h"
#include "unit/cluster/manager_view.h"

namespace lrun::launcher {
namespace {

constexpr const char* kPodsHosts =
    "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n"
    "10.1.0.7\ttrain-2.train.default.svc.cluster.local\ttrain-2\n";

FakeNode old_pytorch_job() {
  return FakeNode({{"KUBERNETES_SERVICE_HOST", "10.0.0.1"},
                   {"MASTER_ADDR", "job-master-0"},
                   {"MASTER_PORT", "23456"},
                   {"WORLD_SIZE", "4"},
                   {"RANK", "1"}});
}

TEST(PytorchJob, OfOldCountsPodsInWorldSize) {
  const auto job = old_pytorch_job().job();
  EXPECT_EQ(text_of(job), "PyTorchJob: node 1 of 4 at job-master-0:23456");
  EXPECT_TRUE(job->replaces_nodes);
}

TEST(PytorchJob, WhoseMasterIsToldLocalhostMeetsUnderItsName) {
  FakeNode master = old_pytorch_job();
  master.with("RANK", "0").with("MASTER_ADDR", "localhost");
  EXPECT_EQ(text_of(master.job()), "PyTorchJob: node 0 of 4 at here:23456") << "others come from elsewhere";
  EXPECT_EQ(text_of(old_pytorch_job().with("MASTER_ADDR", "localhost").job()),
            "PyTorchJob: node 1 of 4 at localhost:23456");
}

TEST(PytorchJob, OfTodayCountsRanksInWorldSizeAndLeavesNodesToPetNnodes) {
  const auto job = old_pytorch_job().without("KUBERNETES_SERVICE_HOST").with("PET_NNODES", "2").job();
  EXPECT_EQ(text_of(job), "PyTorchJob: node 1 of 2 at job-master-0:23456");
  const auto elastic = old_pytorch_job().with("PET_NNODES", "1:4").job();
  EXPECT_EQ(text_of(elastic), "PyTorchJob: node 1 of ? at job-master-0:23456");
}

TEST(PytorchJob, WhoseWorldIsNotThatOfItsNodesIsRefused) {
  FakeNode pod = old_pytorch_job().with("PET_NNODES", "2").with("PET_NPROC_PER_NODE", "1");
  EXPECT_EQ(pod.refusal(), "'WORLD_SIZE=4' and 'PET_NNODES=2' with 'PET_NPROC_PER_NODE=1' contradict each other");
  EXPECT_EQ(pod.with("PET_NPROC_PER_NODE", "2").refusal(), "none");
  EXPECT_EQ(pod.with("PET_NPROC_PER_NODE", "auto").refusal(), "none");
  EXPECT_EQ(pod.with("WORLD_SIZE", "2").refusal(), "none") << "where it is no number, Kubeflow counts nodes";
  EXPECT_EQ(pod.with("PET_NPROC_PER_NODE", "8").refusal(), "none") << "as of old";
  EXPECT_EQ(pod.without("PET_NPROC_PER_NODE").with("WORLD_SIZE", "3").refusal(),
            "'WORLD_SIZE=3' and 'PET_NNODES=2' contradict each other");
  EXPECT_THAT(pod.with("WORLD_SIZE", "4").with("RANK", "2").refusal(),
              mentions({"2 by RANK", "2 nodes", "PET_NNODES"}));
}

TEST(PytorchJob, IsAbsentOutsideOfAPodOrInAWorker) {
  EXPECT_EQ(text_of(old_pytorch_job().without("KUBERNETES_SERVICE_HOST").job()), "none") << "somebody's own variables";
  EXPECT_EQ(text_of(old_pytorch_job().with("LOCAL_RANK", "0").job()), "none") << "a worker of another launcher";
}

TEST(PytorchJob, WhoseVariablesAreEmptyOrNotAllThereIsNone) {
  for (const char* const name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "KUBERNETES_SERVICE_HOST"}) {
    EXPECT_EQ(text_of(old_pytorch_job().with(name, "").job()), "none") << name;
  }
  const FakeNode junk({{"KUBERNETES_SERVICE_HOST", "10.0.0.1"}, {"RANK", "senior"}, {"MASTER_PORT", "tcp://10.0.0.2"}});
  EXPECT_EQ(junk.refusal(), "none");
  EXPECT_EQ(text_of(junk.job()), "none");
  EXPECT_EQ(text_of(old_pytorch_job().with("PET_NNODES", "").job()), "PyTorchJob: node 1 of 4 at job-master-0:23456");
}

TEST(PytorchJob, OfMoreNodesThanAnyRunHasIsRefusedWhereItIsRead) {
  EXPECT_EQ(old_pytorch_job().with("WORLD_SIZE", "65537").refusal(),
            "'WORLD_SIZE=65537' is not a number from 1 to 65536");
  EXPECT_EQ(old_pytorch_job().with("WORLD_SIZE", "2000000000").refusal(),
            "'WORLD_SIZE=2000000000' is not a number from 1 to 65536");
  EXPECT_EQ(old_pytorch_job().with("WORLD_SIZE", "65536").refusal(), "none");
}

FakeNode volcano() {
  return FakeNode({{"VC_TASK_INDEX", "0"},
                   {"VC_MASTER_HOSTS", "job-master-0.job"},
                   {"VC_WORKER_HOSTS", "job-worker-0.job,job-worker-1.job"},
                   {"HOSTNAME", "job-worker-1"}});
}

TEST(VolcanoJob, IsReadFromTheListsOfHosts) {
  const auto job = volcano().job();
  EXPECT_EQ(text_of(job), "Volcano: node 2 of 3 at job-master-0.job:?");
  EXPECT_EQ(job->hosts, (std::vector<std::string>{"job-master-0.job", "job-worker-0.job", "job-worker-1.job"}));
}

TEST(VolcanoJob, OfThePytorchPluginHasRankAndWorldSize) {
  FakeNode pod = volcano();
  pod.with("MASTER_ADDR", "job-master-0.job").with("MASTER_PORT", "23456").with("WORLD_SIZE", "3").with("RANK", "2");
  EXPECT_EQ(text_of(pod.job()), "Volcano: node 2 of 3 at job-master-0.job:23456");
  EXPECT_THAT(pod.with("RANK", "1").refusal(),
              mentions({"1 by RANK", "2", "'job-worker-1'", "VC_MASTER_HOSTS", "VC_WORKER_HOSTS"}));
}

TEST(VolcanoJob, IsAbsentWithoutAPlace) {
  EXPECT_EQ(text_of(volcano().with("HOSTNAME", "job-evaluator-0").job()), "none");
}

TEST(IndexedJob, HasItsRankAndTheNameOfPodZeroButNoNumber) {
  FakeNode pod({{"JOB_COMPLETION_INDEX", "2"}, {"HOSTNAME", "train-2"}});
  EXPECT_EQ(text_of(pod.job()), "Kubernetes indexed Job: node 2 of ? at ?:?") << "no headless service";
  pod.with_file("/etc/hosts", kPodsHosts);
  const auto job = pod.job();
  EXPECT_EQ(text_of(job), "Kubernetes indexed Job: node 2 of ? at train-0.train.default.svc.cluster.local:?");
  EXPECT_EQ(job->run_name, "train-0");
  pod.with("MASTER_ADDR", "elsewhere").with("MASTER_PORT", "1234");
  EXPECT_EQ(text_of(pod.job()), "Kubernetes indexed Job: node 2 of ? at elsewhere:1234") << "somebody wrote it";
  EXPECT_THAT(pod.with("MASTER_PORT", "99999").refusal(), mentions({"'MASTER_PORT=99999' is not a port"}));
}

TEST(IndexedJob, ThatCannotBeReadIsRefused) {
  EXPECT_THAT(FakeNode({{"JOB_COMPLETION_INDEX", "x"}}).refusal(), mentions({"'JOB_COMPLETION_INDEX=x'", "0"}));
  EXPECT_EQ(text_of(FakeNode({{"JOB_COMPLETION_INDEX", ""}}).job()), "none") << "empty: not told";
  EXPECT_EQ(text_of(FakeNode({{"JOB_COMPLETION_INDEX", "99999"}}).job()),
            "Kubernetes indexed Job: node 99999 of ? at ?:?")
      << "such a Job may have 100,000 pods, each a run of its own";
}

TEST(FirstPod, HasTheNameOfThisOneWithIndexZero) {
  EXPECT_EQ(first_pod_of(kPodsHosts, "train-2", 2), "train-0.train.default.svc.cluster.local");
  EXPECT_EQ(first_pod_of("10.1.0.7 set-node-0-1.set set-node-0-1", "set-node-0-1", 1), "set-node-0-0.set") << "JobSet";
  EXPECT_EQ(first_pod_of(kPodsHosts, "train-2", 12), "") << "another index";
  EXPECT_EQ(first_pod_of("10.1.0.7 train-2\n", "train-2", 2), "") << "no service";
  EXPECT_EQ(first_pod_of("# train-2.train", "train-2", 2), "") << "a comment";
  EXPECT_EQ(first_pod_of(kPodsHosts, "-2", 2), "");
}

FakeNode tpu_host() {
  return FakeNode({{"TPU_WORKER_ID", "2"},
                   {"TPU_WORKER_HOSTNAMES", "tpu-0.tpu,tpu-1.tpu,tpu-2.tpu,tpu-3.tpu"},
                   {"JOB_COMPLETION_INDEX", "2"}});
}

TEST(TpuPod, TellsNodesRankAndWhereTheyMeet) {
  EXPECT_EQ(text_of(tpu_host().job()), "TPU pod: node 2 of 4 at tpu-0.tpu:?");
  EXPECT_THAT(tpu_host().with("TPU_WORKER_ID", "4").refusal(),
              mentions({"4 by TPU_WORKER_ID", "4 nodes", "TPU_WORKER_HOSTNAMES"}));
}

TEST(TpuPod, IsNoneOfOneHost) {
  EXPECT_EQ(text_of(tpu_host().with("TPU_WORKER_HOSTNAMES", "localhost").without("JOB_COMPLETION_INDEX").job()),
            "none");
  EXPECT_EQ(text_of(tpu_host().without("TPU_WORKER_ID").without("JOB_COMPLETION_INDEX").job()), "none");
}

}  // namespace
}  // namespace lrun::launcher
