// Asks the reader of each manager in turn whether its job is the one that this launcher belongs to, and fills in the
// host of node rank 0. detect_allocation() calls it.
#include "cluster/managed_job.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/crc32c.h"
#include "base/numeric_address.h"
#include "base/user_error.h"
#include "base/whole_number.h"
#include "cluster/cloud_job.h"
#include "cluster/kubernetes_job.h"
#include "cluster/mpi_job.h"
#include "cluster/outer_launcher.h"

namespace lrun::launcher {
namespace {

constexpr const char* kAlone = "unset it, or give '--standalone' to an lrun that should run by itself";

/// MASTER_ADDR may name a service, but not another host of the job than the first.
void refuse_other_master(const ManagedJob& job, const Reported<std::string>& master) {
  const auto named = std::find(job.hosts.begin(), job.hosts.end(), master.value);
  if (named == job.hosts.end() || named == job.hosts.begin()) return;
  throw UserError(fmt::format("'MASTER_ADDR={}' contradicts {}, by which node rank 0 is on '{}'", master.value,
                              job.host.by, job.host.value),
                  std::string("unset MASTER_ADDR, or ") + kByHand);
}

bool is_loopback(const std::string& host) { return host == "localhost" || host == "::1" || host.starts_with("127."); }

/// Kubernetes sets MASTER_PORT=tcp://… for a Service with the name 'master', which is not a port. Older operators set
/// MASTER_ADDR=localhost on the master itself, where other nodes could not reach it.
void take_master(ManagedJob& job, const ManagerView& view) {
  const Environment& environment = view.environment;
  Reported<std::string> master = reported_text(environment, "MASTER_ADDR");
  master.value = without_brackets(master.value);
  if (master.known() && job.host.known()) refuse_other_master(job, master);
  if (master.known() && (!job.host.known() || job.derives_host)) job.host = master;
  const bool is_first = job.node_rank.known() && job.node_rank.value == 0;
  if (is_first && !job.has_all_ranks_here() && is_loopback(job.host.value)) job.host.value = view.this_host;
  const std::string typed = environment.get("MASTER_PORT").value_or("");
  const auto port = whole_number<int>(typed);
  const bool is_port = port && *port > 0 && *port <= kMostPort;
  if (job.host.by != "MASTER_ADDR" || typed.empty() || typed.starts_with("tcp://")) return;
  if (!is_port)
    throw UserError(fmt::format("'MASTER_PORT={}' is not a port", typed), "unset it, or set one from 1 to 65535");
  job.port = {*port, "MASTER_PORT"};
}

/// mpirun on the hosts of a cloud's job starts one task per host, so it cannot have more tasks than the job has hosts.
void refuse_more_tasks_than_hosts(const ManagedJob& job, const ManagerView& view) {
  if (!job.numbers_tasks()) return;
  for (const auto reader : {sagemaker_job, vertex_job, aws_batch_job}) {
    const std::optional<ManagedJob> hosts = reader(view);
    if (hosts && job.nodes.value > hosts->nodes.value) require_agreement("number of nodes", job.nodes, hosts->nodes);
  }
}

}  // namespace

Reported<int> reported_index(const Environment& environment, const std::string& name) {
  const Reported<std::string> text = reported_text(environment, name);
  if (!text.known()) return {};
  const std::optional<int> number = whole_number<int>(text.value);
  if (number && *number >= 0) return {*number, name};
  throw UserError(fmt::format("'{}={}' is not a number, 0 or more", name, text.value), kAlone);
}

Reported<int> reported_count(const Environment& environment, const std::string& name) {
  const Reported<std::string> text = reported_text(environment, name);
  if (!text.known()) return {};
  const std::optional<int> number = whole_number<int>(text.value);
  if (number && *number >= 1 && *number <= kMostNodes) return {*number, name};
  throw UserError(fmt::format("'{}={}' is not a number from 1 to {}", name, text.value, kMostNodes), kAlone);
}

Reported<std::string> reported_text(const Environment& environment, const std::string& name) {
  const std::string text = environment.get(name).value_or("");
  return text.empty() ? Reported<std::string>() : Reported<std::string>{text, name};
}

void require_agreement(std::string_view what, const Reported<int>& one, const Reported<int>& other) {
  if (!one.known() || !other.known() || one.value == other.value) return;
  throw UserError(fmt::format("{} is {} by {}, but {} by {}", what, one.value, one.by, other.value, other.by),
                  std::string("unset the wrong one, or ") + kByHand);
}

int port_for(std::string_view name) {
  constexpr unsigned kFirstPort = 15'000;
  constexpr unsigned kPorts = 17'000;  // to 31,999
  return static_cast<int>(kFirstPort + crc32c(name) % kPorts);
}

std::optional<ManagedJob> find_managed_job(const ManagerView& view) {
  if (is_worker(view.environment)) return std::nullopt;
  for (const auto reader :
       {azure_job, mpi_job, sagemaker_job, vertex_job, aws_batch_job, volcano_job, pytorch_job, tpu_pod, indexed_job}) {
    std::optional<ManagedJob> job = reader(view);
    if (!job) continue;
    // The order of readers matters: mpirun may run inside of a cloud's job, and Azure ML itself uses it.
    if (job->is_of_one()) return job;
    refuse_more_tasks_than_hosts(*job, view);
    take_master(*job, view);
    if (job->nodes.known()) {
      const Reported<int> last{job->nodes.value - 1, job->nodes.by};
      if (job->node_rank.value > last.value) {
        throw UserError(fmt::format("node rank is {} by {}, but there are {} nodes by {}", job->node_rank.value,
                                    job->node_rank.by, job->nodes.value, job->nodes.by),
                        kByHand);
      }
    }
    return job;
  }
  return std::nullopt;
}

}  // namespace lrun::launcher
