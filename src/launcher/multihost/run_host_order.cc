// In: the order of the head for this node. Out: the exit code of a launcher that has carried it out in this process.
// HostedLauncher calls it in the child that it forks.
#include "multihost/run_host_order.h"

#include <cstdlib>
#include <exception>
#include <vector>

#include "base/user_error.h"
#include "cli/flags.h"
#include "cli/parse_args.h"
#include "cluster/detect.h"
#include "cluster/user_hosts.h"
#include "plan/environment_change.h"
#include "plan/job_place.h"
#include "plan/questions.h"
#include "process/exit_codes.h"
#include "report/head_channel.h"
#include "run/run_request.h"

namespace lrun::launcher {
namespace {

void take_environment(const NodeOrder& order) {
  for (const std::string& variable : order.environment) {
    const auto equals = variable.find('=');
    if (equals == std::string::npos || equals == 0) continue;
    ::setenv(variable.substr(0, equals).c_str(), variable.substr(equals + 1).c_str(), 1);
  }
  ::setenv("LRUN_JOB_SECRET", order.secret.c_str(), 1);
  ::setenv("PWD", order.folder.c_str(), 1);
}

std::vector<GivenValue> values_of(const NodeOrder& order) {
  std::vector<GivenValue> values;
  for (const CarriedValue& value : order.values) {
    const Flag* const flag = find_flag(value.option);
    if (flag == nullptr) continue;  // of the same version, all are there
    values.push_back({flag, value.text, static_cast<Source>(value.source), value.origin, value.place, value.ranks});
  }
  return values;
}

LaunchRequest request_of(const NodeOrder& order) {
  LaunchRequest request;
  request.compat = static_cast<Compat>(order.compat);
  apply_all(values_of(order), request);
  request.command = order.command;
  const auto devices = parse_devices(order.devices, kMostSlots);
  if (const auto* const of_this_host = std::get_if<DeviceRequest>(&devices)) {
    request.nproc_per_node = {};
    request.devices = {*of_this_host, Source::kFlag, order.devices_origin};
  }
  return request;
}

/// This node, then the others, which are taken to be like it until they say what they have.
Allocation allocation_of(const NodeOrder& order, const NodeStart& start, Allocation here) {
  here.nodes.front().name = order.name;
  here.source = "the list of hosts";
  here.reason = "the user names them";
  for (std::size_t rank = 0; rank < order.nodes.size(); ++rank) {
    if (static_cast<int>(rank) == order.node_rank) continue;
    AllocatedNode other = here.nodes.front();
    other.name = order.nodes[rank];
    here.nodes.push_back(std::move(other));
  }
  if (order.nodes.size() > 1) {
    here.job = JobPlace{.run_name = order.run_name.empty() ? order.run_id : order.run_name,
                        .host = start.go.address,
                        .port = start.go.port,
                        .node_rank = order.node_rank,
                        .is_up = true,
                        .listener = start.listener};
  }
  here.run_id = order.run_id;
  here.names_of_host = start.go.one_host;
  return here;
}

int run(const NodeOrder& order, const NodeStart& start, HeadChannel& head) {
  take_environment(order);
  const Environment own = Environment::of_this_process();
  const LaunchRequest asked = request_of(order);
  const Environment of_workers = changed(own, asked.setup.environment);
  Questions questions = questions_of(asked, of_workers);
  questions.manager = questions.other_managers = false;  // the user has said where the run is
  const Allocation allocation = allocation_of(order, start, detect_allocation(questions, of_workers));
  return run_request(placed(asked, allocation), allocation, own, of_workers, {.sink = head, .head = &head});
}

}  // namespace

int run_host_order(const NodeOrder& order, const NodeStart& start) {
  HeadChannel head(start.messages, order.colour, *start.signals);
  try {
    return run(order, start, head);
  } catch (const UserError& error) {
    head.print_error(error);
  } catch (const std::exception& error) {
    head.error(error.what());
  }
  return kExitRefused;
}

}  // namespace lrun::launcher
