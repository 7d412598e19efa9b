// The options of the group 'Several nodes': the hosts that lrun is to start on, and how launchers that were started by
// others find each other. Each value goes into the LaunchRequest, most of them into its RendezvousRequest.
#include <algorithm>
#include <utility>

#include "base/numeric_address.h"
#include "cli/flag_groups.h"
#include "cli/read_value.h"
#include "cli/rendezvous_conf.h"

namespace lrun::launcher {
namespace {

using enum ValueKind;

constexpr int kMostNodeRank = 65'535;

void set_hosts(const GivenValue& given, LaunchRequest& request) {
  require_text(given, "no host is named", "a:4,b:4");
  request.hosts = setting(given, HostList{given.text, parse_host_list(given.text, given.as_written())});
}

/// The file itself is read later, by named_hosts().
void set_hostfile(const GivenValue& given, LaunchRequest& request) {
  require_text(given, "the name of a file is missing", "hosts.txt");
  request.hostfile = setting(given, given.text);
}

/// What a selection names depends on the list of hosts, and named_hosts() reads it with that list.
template <Setting<std::string> LaunchRequest::*field>
void set_selection(const GivenValue& given, LaunchRequest& request) {
  require_text(given, "no host is named", "a@b:0,2");
  request.*field = setting(given, given.text);
}

void set_ssh(const GivenValue& given, LaunchRequest& request) {
  request.ssh = setting(given, command_of(given, "ssh -p 2222"));
}

/// Several endpoints, with commas, are the members of an etcd. An empty value says nothing, as in torchrun.
void set_endpoint(const GivenValue& given, LaunchRequest& request) {
  if (trimmed(given.text).empty()) return;
  std::vector<Endpoint> endpoints;
  for (const std::string& field : fields_of(given.text)) {
    auto endpoint = parse_endpoint(field);
    if (!endpoint)
      refuse(given, "not HOST:PORT; an IPv6 address stands in brackets", example(given, "localhost:29400"));
    endpoints.push_back(std::move(*endpoint));
  }
  request.rendezvous.endpoint = setting(given, std::move(endpoints.front()));
  endpoints.erase(endpoints.begin());
  request.rendezvous.more_endpoints = std::move(endpoints);
}

void set_rendezvous_backend(const GivenValue& given, LaunchRequest& request) {
  if (given.text.empty()) return;
  request.rendezvous.backend = setting(given, choice_in(kRendezvousBackends, given));
}

void set_rendezvous_conf(const GivenValue& given, LaunchRequest& request) {
  read_rendezvous_conf(given, request.rendezvous);
}

/// A name, or an address in or out of brackets. The planner looks whether it is this host's.
template <Setting<std::string> RendezvousRequest::*field>
void set_address(const GivenValue& given, LaunchRequest& request) {
  std::string host = without_brackets(std::string(trimmed(given.text)));
  if (host.find_first_of("[]") != std::string::npos) {
    refuse(given, "neither a host's name nor an address", example(given, "[fd00::1]"));
  }
  request.rendezvous.*field = setting(given, std::move(host));
}

constexpr Flag kNodeFlags[] = {
    {.name = "hosts",
     .aliases = "host",
     .short_names = "H",
     .value = kRequired,
     .placeholder = "HOST[:N],...",
     .group = FlagGroup::kNodes,
     .brief = "run on these hosts, over ssh",
     .details =
         "The hosts of the run, with the number of workers of each: 'a:4,b:4'. A host may also be written '4*a', "
         "'bob@a:4' for a user of another name, or 'n[01-16]:4' for several. Without a number a host has as "
         "many workers as --devices says. lrun starts itself on each host over one ssh, which must not ask for "
         "a password. It has to be at the same path there, or is copied with --copy. The environment is carried "
         "over except for variables that belong to a host or a login (HOME, TMPDIR, SSH_*), and so is the "
         "working directory. The first host hosts the rendezvous.",
     .apply = set_hosts},
    {.name = "hostfile",
     .value = kRequired,
     .placeholder = "FILE",
     .group = FlagGroup::kNodes,
     .details =
         "A file that names the hosts, one a line: 'a slots=4', 'a:4', '4*a', or 'a', which counts once for each "
         "line. 'user=bob' and 'port=2222' may follow; '#' begins a comment.",
     .apply = set_hostfile,
     .same_as = "hosts"},
    {.name = "include",
     .value = kRequired,
     .placeholder = "HOST[:N,...]@...",
     .group = FlagGroup::kNodes,
     .details = "Use only these hosts, and of a host only these devices, as DeepSpeed writes it: 'a@b:0,2'. Without a "
                "list of hosts 'localhost:0,2' are devices of this one.",
     .apply = set_selection<&LaunchRequest::include>},
    {.name = "exclude",
     .value = kRequired,
     .placeholder = "HOST[:N,...]@...",
     .group = FlagGroup::kNodes,
     .details = "Use all hosts but these, or all but these devices of them, in the same grammar.",
     .apply = set_selection<&LaunchRequest::exclude>},
    {.name = "ssh",
     .value = kRequired,
     .placeholder = "COMMAND",
     .group = FlagGroup::kNodes,
     .details = "The command that reaches the other hosts, with its options. lrun adds its own options, the host and "
                "the command to run there.",
     .default_value = "ssh",
     .apply = set_ssh},
    {.name = "copy",
     .group = FlagGroup::kNodes,
     .details = "Copy lrun to the other hosts over their ssh, into a private folder that is removed after the run.",
     .apply = set_switch<&LaunchRequest::copy>},
    {.name = "rdzv-endpoint",
     .value = kRequired,
     .placeholder = "HOST[:PORT][,...]",
     .group = FlagGroup::kNodes,
     .brief = "where the launchers of several nodes meet",
     .details =
         "Where the launchers of several nodes meet: the name or address of one of the nodes, and a port. It is "
         "the same on all nodes. The launcher on that node hosts the rendezvous, and launchers that come before "
         "it wait. With one node it has to mean this machine. An IPv6 address stands in brackets. With etcd: its "
         "members, with commas, at port 2379 unless another is given.",
     .torchrun_variable = true,
     .apply = set_endpoint,
     .overridden_by_standalone = true},
    {.name = "node-rank",
     .value = kRequired,
     .placeholder = "N",
     .group = FlagGroup::kNodes,
     .details = "This node's place among the nodes, from 0. Without it nodes are sorted by address. With the static "
                "backend node 0 hosts the rendezvous.",
     .torchrun_variable = true,
     .apply = set_number<0, kMostNodeRank, &LaunchRequest::rendezvous, &RendezvousRequest::node_rank>},
    {.name = "rdzv-backend",
     .value = kRequired,
     .placeholder = "static|c10d|etcd",
     .group = FlagGroup::kNodes,
     .details = "With 'static' the workers' store is at the endpoint, whose port has to be given. With 'c10d' node 0 "
                "serves it on a free port, and the endpoint's port is 29400 unless another is given. With 'etcd' (or "
                "'etcd-v2') the launchers find each other through an etcd of version 3. It elects the launcher that "
                "hosts the rendezvous, and another one when that is lost; the job needs --rdzv-id.",
     .choices = "static c10d etcd etcd-v2",
     .noun = "rendezvous backend",
     .default_value = "static",
     .torchrun_variable = true,
     .apply = set_rendezvous_backend,
     .overridden_by_standalone = true},
    {.name = "rdzv-conf",
     .value = kRequired,
     .placeholder = "KEY=VALUE,...",
     .group = FlagGroup::kNodes,
     .details = "How launchers wait for each other, in seconds: join_timeout=600 for enough nodes; last_call_timeout=1 "
                "for one more when enough are there; heartbeat_timeout=5 until a silent node is lost (also "
                "keep_alive_interval times keep_alive_max_attempt); read_timeout to reach the rendezvous. is_host=true "
                "or false says whether this launcher hosts the rendezvous. etcd_prefix=/lrun is the folder of jobs in "
                "etcd. protocol=https talks to etcd over TLS: cacert=FILE holds the certificates to trust, cert=FILE "
                "and key=FILE are this launcher's own.",
     .torchrun_variable = true,
     .apply = set_rendezvous_conf,
     .overridden_by_standalone = true},
    {.name = "master-addr",
     .value = kRequired,
     .placeholder = "HOST",
     .group = FlagGroup::kNodes,
     .details = "torchrun's other way to write the endpoint's host; its port is then --master-port, or 29500.",
     .torchrun_variable = true,
     .apply = set_address<&RendezvousRequest::master_addr>},
    {.name = "spares",
     .value = kRequired,
     .placeholder = "N",
     .group = FlagGroup::kNodes,
     .details = "N nodes of a Slurm job wait. When a node of the run is lost, one of them takes its place, and the "
                "workers of all nodes start again (this does not count against --max-restarts). Slurm has to be told "
                "that the job outlives a node: see lrun(1).",
     .apply = set_number<1, kMostNodeRank, &LaunchRequest::spares>},
    {.name = "local-addr",
     .value = kRequired,
     .placeholder = "ADDRESS",
     .group = FlagGroup::kNodes,
     .details = "The address at which other nodes reach this one. By default it is the address from which this node "
                "reaches the rendezvous.",
     .torchrun_variable = true,
     .apply = set_address<&RendezvousRequest::local_addr>},
};

}  // namespace

std::span<const Flag> node_flags() { return kNodeFlags; }

}  // namespace lrun::launcher
