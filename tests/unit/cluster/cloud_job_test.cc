#include "cluster/cloud_job.h"

#include <gtest/gtest.h>

#include "support/mentions.h"
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
  EXPECT_EQ(text_of(job), "SageMaker: node 1 of 2 at algo-1:?");
  EXPECT_EQ(job->node_rank.by, "SM_HOSTS and SM_CURRENT_HOST");
  EXPECT_EQ(job->run_name, "job");
}

TEST(SageMakerJob, IsReadFromItsFileWhereNoToolkitSetVariables) {
  FakeNode node({{"TRAINING_JOB_NAME", "job"}});
  EXPECT_EQ(text_of(node.job()), "none");
  node.with_file("/opt/ml/input/config/resourceconfig.json", kConfig);
  EXPECT_EQ(text_of(node.job()), "SageMaker: node 1 of 2 at algo-1:?");
  EXPECT_EQ(text_of(node.without("TRAINING_JOB_NAME").job()), "none") << "the file is not looked for elsewhere";
}

TEST(SageMakerJob, ThatContradictsItselfIsRefused) {
  EXPECT_THAT(sagemaker().with("SM_CURRENT_HOST", "algo-1").refusal(),
              mentions({"SM_HOSTS", "SM_CURRENT_HOST", "SM_RESOURCE_CONFIG"}));
  EXPECT_THAT(sagemaker().with("SM_CURRENT_HOST", "algo-9").refusal(),
              mentions({"'SM_HOSTS=[\"algo-1\",\"algo-2\"]'", "'SM_CURRENT_HOST=algo-9'"}));
  EXPECT_THAT(sagemaker().with("SM_RESOURCE_CONFIG", "{").refusal(), mentions({"'SM_RESOURCE_CONFIG'"}));
  EXPECT_THAT(sagemaker().with("MASTER_ADDR", "algo-2").refusal(),
              mentions({"'MASTER_ADDR=algo-2'", "SM_HOSTS", "SM_CURRENT_HOST", "0", "'algo-1'"}));
  EXPECT_EQ(sagemaker().with("MASTER_ADDR", "algo-1").refusal(), "none");
}

TEST(SageMakerJob, InWhichMpirunStartsTasksIsTheirs) {
  FakeNode node = sagemaker();
  node.with("OMPI_COMM_WORLD_RANK", "1").with("OMPI_COMM_WORLD_SIZE", "2").with("OMPI_COMM_WORLD_LOCAL_SIZE", "1");
  EXPECT_EQ(text_of(node.job()), "Open MPI: node 1 of 2 at ?:?");
  EXPECT_THAT(node.with("OMPI_COMM_WORLD_SIZE", "4").refusal(),
              mentions({"4 by OMPI_COMM_WORLD_SIZE", "2 by SM_HOSTS and SM_CURRENT_HOST"}));
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
  EXPECT_EQ(text_of(azure().job()), "Azure ML: node 1 of 2 at 10.0.0.4:6105");
  EXPECT_THAT(azure().with("RANK", "0").refusal(), mentions({"0 by RANK", "1 by NODE_RANK"}));
  EXPECT_THAT(azure().with("WORLD_SIZE", "8").refusal(), mentions({"8 processes", "2 nodes"}));
}

TEST(AzureJob, IsAbsentWithEmptyVariables) {
  EXPECT_EQ(text_of(azure().with("AZUREML_NODE_COUNT", "").job()), "none");
  EXPECT_EQ(text_of(azure().with("NODE_RANK", "").job()), "none");
  EXPECT_EQ(text_of(azure().with("WORLD_SIZE", "").with("RANK", "").job()), "Azure ML: node 1 of 2 at 10.0.0.4:6105");
}

TEST(AzureJob, OfMpisDistributionHasTheTasksRank) {
  FakeNode node({{"AZUREML_NODE_COUNT", "2"},
                 {"AZ_BATCHAI_MPI_MASTER_NODE", "10.0.0.4"},
                 {"OMPI_COMM_WORLD_RANK", "1"},
                 {"OMPI_COMM_WORLD_SIZE", "2"},
                 {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}});
  EXPECT_EQ(text_of(node.job()), "Azure ML: node 1 of 2 at 10.0.0.4:?");
  EXPECT_THAT(node.with("AZUREML_NODE_COUNT", "3").refusal(),
              mentions({"2 by OMPI_COMM_WORLD_SIZE", "3 by AZUREML_NODE_COUNT"}));
}

FakeNode vertex(const std::string& pool, const std::string& index) {
  return FakeNode(
      {{"CLUSTER_SPEC", R"({"cluster":{"workerpool0":["wp0-0:2222"],"workerpool1":["wp1-0:2222","wp1-1:2222"]},)"
                        R"("environment":"cloud","task":{"type":")" +
                            pool + R"(","index":)" + index + "}}"}});
}

TEST(VertexJob, CountsWorkerPoolAfterWorkerPool) {
  EXPECT_EQ(text_of(vertex("workerpool0", "0").job()), "Vertex AI: node 0 of 3 at wp0-0:2222");
  EXPECT_EQ(text_of(vertex("workerpool1", "1").job()), "Vertex AI: node 2 of 3 at wp0-0:2222");
}

TEST(VertexJob, WithATaskThatIsNotThereIsRefused) {
  for (const auto& [pool, index] : {std::pair("workerpool1", "2"), {"workerpool7", "0"}, {"workerpool1", "\"0\""}}) {
    EXPECT_THAT(vertex(pool, index).refusal(), mentions({"'CLUSTER_SPEC'"}));
  }
  EXPECT_THAT(FakeNode({{"CLUSTER_SPEC", R"({"cluster":{"work)"}}).refusal(), mentions({"'CLUSTER_SPEC'"}));
  EXPECT_EQ(text_of(FakeNode({{"CLUSTER_SPEC", "mine"}}).job()), "none") << "somebody else's variable";
}

TEST(AwsBatchJob, CountsFromTheMainNode) {
  FakeNode node({{"AWS_BATCH_JOB_ID", "c7b9#1"},
                 {"AWS_BATCH_JOB_NODE_INDEX", "1"},
                 {"AWS_BATCH_JOB_NUM_NODES", "3"},
                 {"AWS_BATCH_JOB_MAIN_NODE_INDEX", "0"},
                 {"AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS", "10.0.0.4"}});
  const auto job = node.job();
  EXPECT_EQ(text_of(job), "AWS Batch: node 1 of 3 at 10.0.0.4:?");
  EXPECT_EQ(job->run_name, "c7b9") << "each node has a number of its own behind it";
  EXPECT_EQ(text_of(node.with("AWS_BATCH_JOB_MAIN_NODE_INDEX", "2").job()), "AWS Batch: node 2 of 3 at 10.0.0.4:?");
  node.without("AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS").with("AWS_BATCH_JOB_MAIN_NODE_INDEX", "1");
  EXPECT_EQ(text_of(node.job()), "AWS Batch: node 0 of 3 at here:?");
  EXPECT_THAT(node.with("AWS_BATCH_JOB_NODE_INDEX", "3").refusal(), mentions({"3", "1", "3 nodes"}));
}

TEST(AwsBatchJob, IsAbsentWithEmptyVariables) {
  for (const char* const name : {"AWS_BATCH_JOB_NODE_INDEX", "AWS_BATCH_JOB_NUM_NODES"}) {
    FakeNode node({{"AWS_BATCH_JOB_NODE_INDEX", "1"}, {"AWS_BATCH_JOB_NUM_NODES", "3"}});
    EXPECT_EQ(text_of(node.with(name, "").job()), "none") << name;
  }
}

}  // namespace
}  // namespace lrun::launcher
