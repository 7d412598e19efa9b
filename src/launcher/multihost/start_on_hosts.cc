// In: the command line and the hosts that it names. Out: one launcher on each host, through a Head, and the exit code
// of the run. main() calls run_on_hosts().
#include "multihost/start_on_hosts.h"

#include <signal.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>

#include "base/event_loop.h"
#include "cli/deepspeed_env.h"
#include "cluster/detect.h"
#include "lrun_version.h"
#include "multihost/head.h"
#include "multihost/head_record.h"
#include "multihost/host_output.h"
#include "multihost/named_hosts.h"
#include "plan/host_place.h"
#include "plan/questions.h"
#include "plan/run_id.h"
#include "plan/stop_signals.h"
#include "process/process_limits.h"
#include "process/signal_set.h"
#include "process/spawn.h"
#include "remote/host_links.h"
#include "remote/host_ways.h"
#include "remote/own_program.h"
#include "remote/ssh.h"
#include "run/join_job.h"
#include "run/run_request.h"
#include "supervise/signal_source.h"

namespace lrun::launcher {
namespace {

/// Options that are the head's alone.
bool is_for_head(std::string_view name) {
  constexpr std::array<std::string_view, 9> kNames{"hosts", "hostfile", "include", "exclude",    "ssh",
                                                   "copy",  "config",   "dry-run", "master-addr"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

std::vector<CarriedValue> carried_values(const std::vector<GivenValue>& settings) {
  std::vector<CarriedValue> carried;
  for (const GivenValue& given : settings) {
    if (is_for_head(given.flag->name)) continue;
    carried.push_back({std::string(given.flag->name), given.text, static_cast<int>(given.source), given.origin,
                       given.place, given.ranks});
  }
  return carried;
}

std::vector<std::string> carried_variables(const Environment& environment, const WorkerSetup& setup) {
  std::vector<std::string> variables;
  for (const auto& [name, value] : environment.variables()) variables.push_back(name + "=" + value);
  std::vector<std::string> wanted;
  for (const EnvironmentChange& change : setup.environment) {
    if (change.kind == EnvironmentChange::Kind::kPassOn) wanted.push_back(change.name);
  }
  return carried_environment(variables, wanted);
}

/// The order without the fields that differ between hosts.
NodeOrder common_order(const ParsedCommandLine& parsed, const LaunchRequest& request, const std::vector<Host>& hosts,
                       const Environment& environment, bool colour) {
  NodeOrder order;
  order.version = LRUN_VERSION;
  order.compat = static_cast<int>(request.compat);
  order.values = carried_values(parsed.settings);
  order.command = request.command;
  order.environment = carried_variables(environment, request.setup);
  order.folder = std::filesystem::current_path().string();
  order.needs_folder = !request.setup.folder.value.starts_with('/');
  for (const Host& host : hosts) order.nodes.push_back(host.name);
  order.run_id = make_run_id();
  order.run_name = request.rdzv_id;
  order.secret = job_secret_or_new(environment);
  order.port = request.master_port.value.value_or(0);
  order.colour = colour;
  return order;
}

/// The hosts as the head knows them, each with its order.
std::vector<Head::Host> hosts_of_head(const NodeOrder& common, const LaunchRequest& request,
                                      const std::vector<Host>& hosts, const std::vector<bool>& here) {
  std::vector<Head::Host> all;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    Head::Host host{here[i], common};
    // The input of a child here ends with the head. A host elsewhere may not learn of the head's end.
    host.order.most_silence = here[i] ? 0 : static_cast<int>(kMostSilence.count());
    host.order.name = hosts[i].name;
    host.order.node_rank = static_cast<int>(i);
    host.order.devices = text_of(devices_of(hosts[i]));
    host.order.devices_origin = devices_origin_of(request, hosts[i]);
    all.push_back(std::move(host));
  }
  return all;
}

/// The commands that connect to the hosts.
/// \param copied  bytes of lrun that every other host gets first; 0: it is there.
std::vector<HostLinks::Host> hosts_of_links(const LaunchRequest& request, const std::vector<Host>& hosts,
                                            const std::vector<bool>& here, std::size_t copied) {
  const std::string lrun = own_program_path();
  const std::vector<std::string>& ssh = request.ssh.value;
  std::vector<HostLinks::Host> all;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const auto over_ssh = [&](const char* word) {
      return copied > 0 ? ssh_copy_command(ssh, hosts[i], copied, word) : ssh_command(ssh, hosts[i], lrun, word);
    };
    if (here[i]) {
      all.push_back({hosts[i].name, true, {lrun, kNodeWord}, {}});
    } else {
      all.push_back({hosts[i].name, false, over_ssh(kNodeWord), over_ssh(kRelayWord)});
    }
  }
  return all;
}

/// Signals that the workers may want to see, those that end the run, and SIGTSTP; what nohup ignores stays ignored.
std::vector<int> block_signals(std::vector<int> stop_signals) {
  stop_signals.insert(stop_signals.end(), {SIGUSR1, SIGUSR2, SIGTSTP});
  return block_unless_ignored(std::move(stop_signals));
}

int start_on_hosts(const ParsedCommandLine& parsed, const LaunchRequest& request, const std::vector<Host>& hosts,
                   const std::vector<bool>& here, const Environment& environment, bool colour) {
  const NodeOrder common = common_order(parsed, request, hosts, environment, colour);
  hide_secrets();
  std::vector<std::string> warnings_at_start;
  const StopSignals stop_signals =
      choose_stop_signals(request.signals_to_handle, personality_of(request.compat), warnings_at_start);
  const SpawnDefaults defaults = SpawnDefaults::of_this_process();
  (void)FileLimit::raise_to_hard();
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGCHLD, SIG_DFL);
  const std::vector<int> signals = block_signals(stop_signals.numbers);
  Head::End end;
  {
    EventLoop loop;
    HostOutput output(loop, hosts.size(), LogOptions{}, colour);
    // Hosts that the job can do without are connected to directly, so that none takes others with it.
    const int least = request.min_nodes == 0 ? static_cast<int>(hosts.size()) : request.min_nodes;
    const std::size_t most_connections = least == static_cast<int>(hosts.size()) ? kMostConnections : hosts.size();
    std::string copied = request.copy ? own_program() : std::string();
    std::vector<HostLinks::Host> ends = hosts_of_links(request, hosts, here, copied.size());
    HeadRecord record(loop, common, environment, output);
    Head head(loop, hosts_of_head(common, request, hosts, here),
              {.master_addr = request.rendezvous.master_addr.value,
               .program = own_program_path(),
               .min_nodes = least,
               .grace = request.grace.value,
               .stop_signals = stop_signals.numbers,
               .began = [&] { record.begin(); },
               .told = [&](const std::string& answer) { record.told(answer); }},
              output, output, [&](HeadLinks::Events events) {
                HostLinks::Options options{host_ways(here, most_connections), defaults, std::move(copied)};
                return std::make_unique<HostLinks>(loop, std::move(ends), std::move(options), std::move(events));
              });
    const SignalSource source(loop, signals,
                              [&head](const ReceivedSignal& signal) { head.signal_arrived(signal.number); });
    record.wait(head);
    end = head.run();
    record.end(head, end);
  }
  if (end.signal_number != 0) die_of(end.signal_number);
  return end.code;
}

}  // namespace

int run_on_hosts(ParsedCommandLine parsed, const std::vector<Host>& hosts, const Environment& environment,
                 MessageSink& sink) {
  take_deepspeed_env(parsed, environment);
  const LaunchRequest request = placed_on_hosts(parsed.request, hosts);
  const std::vector<bool> here = which_are_here(hosts);
  const Environment of_workers = changed(environment, request.setup.environment);
  const bool alone = hosts.size() == 1 && here.front();
  if (!alone && request.dry_run == DryRun::kNo) {
    check_for_all_nodes(request, of_workers);
    return start_on_hosts(parsed, request, hosts, here, environment, sink.colour());
  }
  Questions questions = questions_of(request, of_workers);
  questions.manager = questions.other_managers = false;  // the user has said where the run is
  const Allocation this_host = detect_allocation(questions, of_workers);
  const Allocation allocation = allocation_of_hosts(request, hosts, this_host.nodes.front());
  return run_request(request, allocation, environment, of_workers, {.sink = sink});
}

}  // namespace lrun::launcher
