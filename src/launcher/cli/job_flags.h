#pragma once

#include "cli/flags.h"
#include "cli/host_values.h"
#include "cli/rendezvous_values.h"

namespace lrun::launcher {

/// The rows of the flag table about how the launchers of several nodes find each other.
inline constexpr Flag kJobFlags[] = {
    {.name = "hosts",
     .aliases = "host",
     .short_names = "H",
     .value = ValueKind::kRequired,
     .placeholder = "HOST[:N],...",
     .group = FlagGroup::kNodes,
     .brief = "run on these hosts, over ssh",
     .details =
         "The hosts of the run, with the number of workers of each: 'a:4,b:4'. A host may also be written '4*a', "
         "'bob@a:4' for a user of another name, or 'n[01-16]:4' for several; without a number it has as many workers "
         "as --devices says. lrun starts itself on each over one ssh, which must not ask for a password; it has to be "
         "at the same path there, or is copied with --copy. The environment is carried over but for what belongs to a "
         "host or a login (HOME, TMPDIR, SSH_*), and so is the working directory. The launchers meet on the first "
         "host.",
     .apply = flag_values::hosts},
    {.name = "hostfile",
     .value = ValueKind::kRequired,
     .placeholder = "FILE",
     .group = FlagGroup::kNodes,
     .details =
         "A file that names the hosts, one a line: 'a slots=4', 'a:4', '4*a', or 'a', which counts once for each line. "
         "'user=bob' and 'port=2222' may follow; '#' begins a comment.",
     .apply = flag_values::hostfile,
     .same_as = "hosts"},
    {.name = "include",
     .value = ValueKind::kRequired,
     .placeholder = "HOST[:N,...]@...",
     .group = FlagGroup::kNodes,
     .details = "Of the hosts only these, and of a host only these devices, as DeepSpeed writes it: 'a@b:0,2'. Without "
                "a list of hosts 'localhost:0,2' are devices of this one.",
     .apply = flag_values::include},
    {.name = "exclude",
     .value = ValueKind::kRequired,
     .placeholder = "HOST[:N,...]@...",
     .group = FlagGroup::kNodes,
     .details = "Of the hosts all but these, or all but these devices of them, in the same grammar.",
     .apply = flag_values::exclude},
    {.name = "ssh",
     .value = ValueKind::kRequired,
     .placeholder = "COMMAND",
     .group = FlagGroup::kNodes,
     .details = "How the other hosts are reached: a command with its options, to which lrun adds its own, the host and "
                "what to "
                "run there.",
     .default_value = "ssh",
     .apply = flag_values::ssh},
    {.name = "copy",
     .group = FlagGroup::kNodes,
     .details = "Copies lrun to the other hosts over their ssh, into a private folder that goes with the run.",
     .apply = flag_values::copy},
    {.name = "rdzv-endpoint",
     .value = ValueKind::kRequired,
     .placeholder = "HOST[:PORT][,...]",
     .group = FlagGroup::kNodes,
     .brief = "where the launchers of several nodes meet",
     .details =
         "Where the launchers of several nodes meet: the name or address of one of the nodes, and a port. It is the "
         "same on all nodes; the launcher on that node holds the meeting, and launchers that come before it wait. With "
         "one node it has to mean this machine. An IPv6 address stands in brackets. With etcd: its members, with "
         "commas, at port 2379 unless it says another.",
     .pet_variable = "PET_RDZV_ENDPOINT",
     .apply = flag_values::rdzv_endpoint,
     .overridden_by_standalone = true},
    {.name = "node-rank",
     .value = ValueKind::kRequired,
     .placeholder = "N",
     .group = FlagGroup::kNodes,
     .details = "This node's place among the nodes, from 0. Without it nodes are sorted by address. With the static "
                "backend node 0 holds the meeting.",
     .pet_variable = "PET_NODE_RANK",
     .apply = flag_values::node_rank},
    {.name = "rdzv-backend",
     .value = ValueKind::kRequired,
     .placeholder = "static|c10d|etcd",
     .group = FlagGroup::kNodes,
     .details = "With 'static' the workers' store is at the endpoint, whose port has to be given; with 'c10d' node 0 "
                "serves it on a free port, and the endpoint's port is 29400 unless it says another. With 'etcd' (or "
                "'etcd-v2') the launchers find each other through an etcd of version 3, which chooses the one that "
                "holds the meeting, and another when that is lost; the job needs --rdzv-id.",
     .choices = "static c10d etcd etcd-v2",
     .default_value = "static",
     .pet_variable = "PET_RDZV_BACKEND",
     .apply = flag_values::rdzv_backend,
     .overridden_by_standalone = true},
    {.name = "rdzv-conf",
     .value = ValueKind::kRequired,
     .placeholder = "KEY=VALUE,...",
     .group = FlagGroup::kNodes,
     .details =
         "How launchers wait for each other, in seconds: join_timeout=600 for enough nodes; last_call_timeout=1 for "
         "one more when enough are there; heartbeat_timeout=5 until a silent node is lost (also keep_alive_interval "
         "times keep_alive_max_attempt); read_timeout to reach the meeting. is_host=true or false says whether this "
         "launcher holds the meeting. etcd_prefix=/lrun is the folder of jobs in etcd, which protocol=https asks over "
         "TLS: cacert=FILE names whose certificates count, cert=FILE and key=FILE are this launcher's own.",
     .pet_variable = "PET_RDZV_CONF",
     .apply = flag_values::rdzv_conf,
     .overridden_by_standalone = true},
    {.name = "master-addr",
     .value = ValueKind::kRequired,
     .placeholder = "HOST",
     .group = FlagGroup::kNodes,
     .details = "torchrun's other way to write the endpoint's host; its port is then --master-port, or 29500.",
     .pet_variable = "PET_MASTER_ADDR",
     .apply = flag_values::master_addr},
    {.name = "spares",
     .value = ValueKind::kRequired,
     .placeholder = "N",
     .group = FlagGroup::kNodes,
     .details =
         "Of a Slurm job's nodes, N wait. When a node of the run is lost, one of them takes its place: the workers "
         "of all nodes start again, which is no restart. Slurm has to be told that the job is to outlive a node: see "
         "lrun(1).",
     .apply = flag_values::spares},
    {.name = "local-addr",
     .value = ValueKind::kRequired,
     .placeholder = "ADDRESS",
     .group = FlagGroup::kNodes,
     .details = "Where other nodes reach this one. Without it, it is the address from which the meeting is reached.",
     .pet_variable = "PET_LOCAL_ADDR",
     .apply = flag_values::local_addr},
};

}  // namespace lrun::launcher
