#include "cluster/cloud_job.h"

#include <gtest/gtest.h>

#include "unit/cluster/manager_view.h"

namespace lrun::launcher {
namespace {

constexpr const char* kConfig =
    R"({"current_host":"algo-2","hosts":["algo-1","algo-2"],"network_interface_name":"eth0"})";

FakeNode sagemaker() {
  return FakeNode({{"SM_HOSTS", R"(["algo-1","algo-2"])"},
                   {"SM_CURRENT_HOST", "algo-2"},
                   {"SM_RESOURCE_CONFIG", kConfig},
                   {"TRAINING_JOB_NAME", "job"}});
}

TEST(SageMakerJob, IsReadFromHostsAndCurrentHost) {
  const auto job = sagemaker().job();
  EXPECT_EQ(in_words(job), "SageMaker: node 1 of 2 at algo-1:?");
  EXPECT_EQ(job->node_rank.by, "SM_HOSTS and SM_CURRENT_HOST");
  EXPECT_EQ(job->run_name, "job");
}

TEST(SageMakerJob, IsReadFromItsFileWhereNoToolkitSetVariables) {
  FakeNode node({{"TRAINING_JOB_NAME", "job"}});
  EXPECT_EQ(in_words(node.job()), "none");
  node.with_file("/opt/ml/input/config/resourceconfig.json", kConfig);
  EXPECT_EQ(in_words(node.job()), "SageMaker: node 1 of 2 at algo-1:?");
  EXPECT_EQ(in_words(node.without("TRAINING_JOB_NAME").job()), "none") << "the file is not looked for elsewhere";
}

TEST(SageMakerJob, ThatContradictsItselfIsRefused) {
  EXPECT_EQ(sagemaker().with("SM_CURRENT_HOST", "algo-1").refusal(),
            "SM_HOSTS and SM_CURRENT_HOST and SM_RESOURCE_CONFIG do not agree");
  EXPECT_EQ(
      sagemaker().with("SM_CURRENT_HOST", "algo-9").refusal(),
      "'SM_HOSTS=[\"algo-1\",\"algo-2\"]' with 'SM_CURRENT_HOST=algo-9' does not say which of which hosts this is");
  EXPECT_EQ(sagemaker().with("SM_RESOURCE_CONFIG", "{").refusal(),
            "'SM_RESOURCE_CONFIG' does not say which of which hosts this is");
  EXPECT_EQ(sagemaker().with("MASTER_ADDR", "algo-2").refusal(),
            "'MASTER_ADDR=algo-2', and SM_HOSTS and SM_CURRENT_HOST says that node rank 0 is on 'algo-1'");
  EXPECT_EQ(sagemaker().with("MASTER_ADDR", "algo-1").refusal(), "none");
}

TEST(SageMakerJob, InWhichMpirunStartsTasksIsTheirs) {
  FakeNode node = sagemaker();
  node.with("OMPI_COMM_WORLD_RANK", "1").with("OMPI_COMM_WORLD_SIZE", "2").with("OMPI_COMM_WORLD_LOCAL_SIZE", "1");
  EXPECT_EQ(in_words(node.job()), "Open MPI: node 1 of 2 at ?:?");
  EXPECT_EQ(node.with("OMPI_COMM_WORLD_SIZE", "4").refusal(),
            "number of nodes is 4 by OMPI_COMM_WORLD_SIZE, and 2 by SM_HOSTS and SM_CURRENT_HOST");
  EXPECT_EQ(node.with("OMPI_COMM_WORLD_SIZE", "16").with("OMPI_COMM_WORLD_LOCAL_SIZE", "8").refusal(), "none")
      << "several a host are counted, not numbered";
}

TEST(SageMakerJob, OfOneHostIsOfOne) {
  EXPECT_TRUE(FakeNode({{"SM_HOSTS", R"(["algo-1"])"}, {"SM_CURRENT_HOST", "algo-1"}}).job()->is_of_one());
}

FakeNode azure() {
  return FakeNode({{"AZUREML_NODE_COUNT", "2"},
                   {"NODE_RANK", "1"},
                   {"MASTER_ADDR", "10.0.0.4"},
                   {"MASTER_PORT", "6105"},
                   {"WORLD_SIZE", "2"},
                   {"RANK", "1"},
                   {"LOCAL_RANK", "0"}});
}

TEST(AzureJob, OfPytorchsDistributionHasItsNodeRank) {
  EXPECT_EQ(in_words(azure().job()), "Azure ML: node 1 of 2 at 10.0.0.4:6105");
  EXPECT_EQ(azure().with("RANK", "0").refusal(), "node rank is 0 by RANK, and 1 by NODE_RANK");
  EXPECT_EQ(azure().with("WORLD_SIZE", "8").refusal(),
            "this job of Azure ML starts 8 processes on 2 nodes, and each is an lrun that would start all workers of "
            "its node");
}

TEST(AzureJob, WhoseVariablesAreEmptyIsNone) {
  EXPECT_EQ(in_words(azure().with("AZUREML_NODE_COUNT", "").job()), "none");
  EXPECT_EQ(in_words(azure().with("NODE_RANK", "").job()), "none");
  EXPECT_EQ(in_words(azure().with("WORLD_SIZE", "").with("RANK", "").job()), "Azure ML: node 1 of 2 at 10.0.0.4:6105");
}

TEST(AzureJob, OfMpisDistributionHasTheTasksRank) {
  FakeNode node({{"AZUREML_NODE_COUNT", "2"},
                 {"AZ_BATCHAI_MPI_MASTER_NODE", "10.0.0.4"},
                 {"OMPI_COMM_WORLD_RANK", "1"},
                 {"OMPI_COMM_WORLD_SIZE", "2"},
                 {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}});
  EXPECT_EQ(in_words(node.job()), "Azure ML: node 1 of 2 at 10.0.0.4:?");
  EXPECT_EQ(node.with("AZUREML_NODE_COUNT", "3").refusal(),
            "number of nodes is 2 by OMPI_COMM_WORLD_SIZE, and 3 by AZUREML_NODE_COUNT");
}

FakeNode vertex(const std::string& pool, const std::string& index) {
  return FakeNode(
      {{"CLUSTER_SPEC", R"({"cluster":{"workerpool0":["wp0-0:2222"],"workerpool1":["wp1-0:2222","wp1-1:2222"]},)"
                        R"("environment":"cloud","task":{"type":")" +
                            pool + R"(","index":)" + index + "}}"}});
}

TEST(VertexJob, CountsWorkerPoolAfterWorkerPool) {
  EXPECT_EQ(in_words(vertex("workerpool0", "0").job()), "Vertex AI: node 0 of 3 at wp0-0:2222");
  EXPECT_EQ(in_words(vertex("workerpool1", "1").job()), "Vertex AI: node 2 of 3 at wp0-0:2222");
}

TEST(VertexJob, WithATaskThatIsNotThereIsRefused) {
  const std::string refusal = "'CLUSTER_SPEC' does not say which of which hosts this is";
  EXPECT_EQ(vertex("workerpool1", "2").refusal(), refusal);
  EXPECT_EQ(vertex("workerpool7", "0").refusal(), refusal);
  EXPECT_EQ(vertex("workerpool1", "\"0\"").refusal(), refusal);
  EXPECT_EQ(FakeNode({{"CLUSTER_SPEC", R"({"cluster":{"work)"}}).refusal(),
            "'CLUSTER_SPEC', which is cut off, does not say which of which hosts this is");
  EXPECT_EQ(in_words(FakeNode({{"CLUSTER_SPEC", "mine"}}).job()), "none") << "somebody else's variable";
}

TEST(AwsBatchJob, CountsFromTheMainNode) {
  FakeNode node({{"AWS_BATCH_JOB_ID", "c7b9#1"},
                 {"AWS_BATCH_JOB_NODE_INDEX", "1"},
                 {"AWS_BATCH_JOB_NUM_NODES", "3"},
                 {"AWS_BATCH_JOB_MAIN_NODE_INDEX", "0"},
                 {"AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS", "10.0.0.4"}});
  const auto job = node.job();
  EXPECT_EQ(in_words(job), "AWS Batch: node 1 of 3 at 10.0.0.4:?");
  EXPECT_EQ(job->run_name, "c7b9") << "each node has a number of its own behind it";
  EXPECT_EQ(in_words(node.with("AWS_BATCH_JOB_MAIN_NODE_INDEX", "2").job()), "AWS Batch: node 2 of 3 at 10.0.0.4:?");
  node.without("AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS").with("AWS_BATCH_JOB_MAIN_NODE_INDEX", "1");
  EXPECT_EQ(in_words(node.job()), "AWS Batch: node 0 of 3 at here:?");
  EXPECT_EQ(node.with("AWS_BATCH_JOB_NODE_INDEX", "3").refusal(),
            "this job of AWS Batch tells node 3, main node 1, of 3 nodes");
}

TEST(AwsBatchJob, WhoseVariablesAreEmptyIsNone) {
  for (const char* const name : {"AWS_BATCH_JOB_NODE_INDEX", "AWS_BATCH_JOB_NUM_NODES"}) {
    FakeNode node({{"AWS_BATCH_JOB_NODE_INDEX", "1"}, {"AWS_BATCH_JOB_NUM_NODES", "3"}});
    EXPECT_EQ(in_words(node.with(name, "").job()), "none") << name;
  }
}

}  // namespace
}  // namespace lrun::launcher
