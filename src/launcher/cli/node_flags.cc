// The options of the group 'Several nodes': the hosts that lrun is to start on, and how launchers that were started by
// others find each other. Each value goes into the LaunchRequest, most of them into its RendezvousRequest.
#include <utility>

#include "base/numeric_address.h"
#include "base/split.h"
#include "cli/flag_groups.h"
#include "cli/read_value.h"
#include "cli/rendezvous_conf.h"
#include "cluster/allocation.h"
#include "cluster/slurm_lists.h"

namespace lrun::launcher {
namespace {

using enum ValueKind;

constexpr int kMostNodeRank = kMostNodes - 1;

void set_hosts(const GivenValue& given, LaunchRequest& request) {
  require_text(given, "names no host", "a:4,b:4");
  request.hosts = setting(given, HostList{given.text, parse_host_list(given.text, given.as_written())});
}

/// The file itself is read later, by named_hosts().
void set_hostfile(const GivenValue& given, LaunchRequest& request) {
  require_text(given, "the name of a file is missing", "hosts.txt");
  request.hostfile = setting(given, given.text);
}

/// The meaning of a selection depends on the list of hosts, so named_hosts() reads it together with that list.
template <Setting<std::string> LaunchRequest::*field>
void set_selection(const GivenValue& given, LaunchRequest& request) {
  require_text(given, "names no host", "a@b:0,2");
  request.*field = setting(given, given.text);
}

void set_ssh(const GivenValue& given, LaunchRequest& request) {
  request.ssh = setting(given, command_of(given, "ssh -p 2222"));
}

/// Why `text` is no endpoint.
std::string endpoint_problem(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  const std::string port = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (text.find("://") != std::string::npos) return "it is a URL, and not HOST:PORT";
  const bool has_host = colon != std::string::npos && parse_endpoint(text.substr(0, colon) + ":1");
  if (has_host && port.empty()) return "the port behind ':' is missing";
  if (has_host) return "'" + port + "' is not a port; allowed: 1 to " + std::to_string(kMostPort);
  return colon == 0 ? "the host before ':' is missing" : "not HOST:PORT; put an IPv6 address in brackets";
}

/// A correct value: 'node0:29500' of 'http://node0:29500/'.
std::string endpoint_in(const std::string& text) {
  const std::size_t scheme = text.find("://");
  if (scheme == std::string::npos) return "localhost:29400";
  const std::string rest = text.substr(scheme + 3);
  const std::string endpoint = rest.substr(0, rest.find('/'));
  return parse_endpoint(endpoint) ? endpoint : "localhost:29400";
}

/// The first host, with the port, of a list such as 'node[01-02]:29500'. Empty: it is no such list.
std::string first_of_range(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  const std::size_t bracket = text.find('[');
  if (colon == std::string::npos || bracket == 0 || bracket > colon) return {};
  const auto hosts = parse_slurm_hosts(text.substr(0, colon));
  return hosts && !hosts->empty() ? hosts->front() + text.substr(colon) : std::string();
}

/// Several endpoints, with commas, are the members of an etcd. As in torchrun, an empty value is no endpoint.
void set_endpoint(const GivenValue& given, LaunchRequest& request) {
  if (trimmed(given.text).empty()) return;
  if (const std::string first = first_of_range(given.text); !first.empty()) {
    refuse(given, "names several hosts; all nodes meet at one of them", example(given, first));
  }
  std::vector<Endpoint> endpoints;
  for (const std::string& field : fields_of(given.text)) {
    auto endpoint = parse_endpoint(field);
    if (!endpoint) refuse(given, endpoint_problem(field), example(given, endpoint_in(field)));
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

/// A name, or an address with or without brackets. The planner finds out whether it means this host.
template <Setting<std::string> RendezvousRequest::*field>
void set_address(const GivenValue& given, LaunchRequest& request) {
  std::string host = without_brackets(std::string(trimmed(given.text)));
  if (host.find_first_of("[]") != std::string::npos) {
    refuse(given, "neither a host name nor an address", example(given, "[fd00::1]"));
  }
  const std::size_t colon = host.find(':');
  if (colon != std::string::npos && colon == host.rfind(':')) {
    const bool has_port = field == &RendezvousRequest::master_addr;
    GivenValue port = given;  // 'addr' ends all names of the option
    port.origin.replace(port.origin.size() - 4, 4, given.source == Source::kEnvironment ? "PORT" : "port");
    refuse(given, "no name of a host",
           has_port ? "the port stands in '" + port.as_written_with(host.substr(colon + 1)) + "'"
                    : "leave the port out: '" + given.as_written_with(host.substr(0, colon)) + "'");
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
         "The hosts of the run, with the number of workers of each: 'a:4,b:4'. Other forms: '4*a', 'bob@a:4' for "
         "another user name, 'n[01-16]:4' for several hosts. Without a number, --devices gives the workers of a "
         "host. lrun starts itself on each host over one ssh, which must not ask for a password; it has to be at "
         "the same path there, or use --copy. Environment and working directory are the same there, except for "
         "variables of a host or a login (HOME, TMPDIR, SSH_*). The first host hosts the rendezvous.",
     .apply = set_hosts},
    {.name = "hostfile",
     .value = kRequired,
     .placeholder = "FILE",
     .group = FlagGroup::kNodes,
     .details = "A file with one host per line: 'a slots=4', 'a:4', '4*a', or 'a' once per worker. 'user=bob' and "
                "'port=2222' may follow. '#' begins a comment.",
     .apply = set_hostfile,
     .same_as = "hosts"},
    {.name = "include",
     .value = kRequired,
     .placeholder = "HOST[:N,...]@...",
     .group = FlagGroup::kNodes,
     .details =
         "Use only these hosts, or only these devices of a host, in the grammar of DeepSpeed: 'a@b:0,2'. Without "
         "a list of hosts, 'localhost:0,2' selects devices of this host.",
     .apply = set_selection<&LaunchRequest::include>},
    {.name = "exclude",
     .value = kRequired,
     .placeholder = "HOST[:N,...]@...",
     .group = FlagGroup::kNodes,
     .details = "Use all hosts except these, or all devices except these, in the same grammar.",
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
     .brief = "where the rendezvous of several nodes is",
     .details =
         "The rendezvous of several nodes: the name or address of one of them, and a port; the same on all nodes. "
         "The launcher on that node hosts the rendezvous, and launchers that start earlier wait for it. With one "
         "node it has to mean this machine. Put an IPv6 address in brackets. With etcd: its members, with commas; "
         "the default port is then 2379.",
     .torchrun_variable = true,
     .apply = set_endpoint,
     .overridden_by_standalone = true},
    {.name = "node-rank",
     .value = kRequired,
     .placeholder = "N",
     .group = FlagGroup::kNodes,
     .details = "The rank of this node, from 0. By default nodes are sorted by address. With the static backend node 0 "
                "hosts the rendezvous.",
     .torchrun_variable = true,
     .apply = set_number<0, kMostNodeRank, &LaunchRequest::rendezvous, &RendezvousRequest::node_rank>},
    {.name = "rdzv-backend",
     .value = kRequired,
     .placeholder = "static|c10d|etcd",
     .group = FlagGroup::kNodes,
     .details =
         "With 'static' the workers' store is at the endpoint, which needs a port. With 'c10d' node 0 serves the "
         "store on a free port, and the default port of the endpoint is 29400. With 'etcd' (or 'etcd-v2') the "
         "launchers find each other through an etcd of version 3, which elects the launcher that hosts the "
         "rendezvous, and another one when that is lost. The job then needs --rdzv-id.",
     .choices = "static c10d etcd etcd-v2",
     .noun = "rendezvous backend",
     .default_value = "static",
     .torchrun_variable = true,
     .apply = set_rendezvous_backend,
     .hint = "leave it out; PROGRAM names the backend of collectives, as in init_process_group(\"gloo\")",
     .overridden_by_standalone = true},
    {.name = "rdzv-conf",
     .value = kRequired,
     .placeholder = "KEY=VALUE,...",
     .group = FlagGroup::kNodes,
     .details = "Details of the rendezvous. Times, in seconds: join_timeout=600 to wait for enough nodes; "
                "last_call_timeout=1 to wait for more nodes after that; heartbeat_timeout=5 until a silent node is "
                "lost (or keep_alive_interval times keep_alive_max_attempt); read_timeout to reach the rendezvous. "
                "is_host=true or false: whether this launcher hosts the rendezvous. etcd_prefix=/lrun: the folder of "
                "jobs in etcd. protocol=https: use TLS with etcd; cacert=FILE has the certificates to trust, "
                "cert=FILE and key=FILE are this launcher's own.",
     .torchrun_variable = true,
     .apply = set_rendezvous_conf,
     .overridden_by_standalone = true},
    {.name = "master-addr",
     .value = kRequired,
     .placeholder = "HOST",
     .group = FlagGroup::kNodes,
     .details = "torchrun's other way to give the endpoint's host. The port is --master-port, or 29500.",
     .torchrun_variable = true,
     .apply = set_address<&RendezvousRequest::master_addr>},
    {.name = "spares",
     .value = kRequired,
     .placeholder = "N",
     .group = FlagGroup::kNodes,
     .details = "Keep N nodes of a Slurm job in reserve. When a node of the run is lost, a spare replaces it, and the "
                "workers of all nodes start again (this does not count against --max-restarts). The Slurm job has to "
                "survive the loss of a node: see lrun(1).",
     .apply = set_number<1, kMostNodeRank, &LaunchRequest::spares>},
    {.name = "local-addr",
     .value = kRequired,
     .placeholder = "ADDRESS",
     .group = FlagGroup::kNodes,
     .details = "The address at which other nodes reach this one. The default is the address from which this node "
                "reaches the rendezvous.",
     .torchrun_variable = true,
     .apply = set_address<&RendezvousRequest::local_addr>},
};

}  // namespace

std::span<const Flag> node_flags() { return kNodeFlags; }

}  // namespace lrun::launcher
