// The options of the group 'Workers and devices': how each value is read, then the rows. Called for the rows of the
// flag table, whose apply() puts a value into the LaunchRequest.
#include "cli/flag_groups.h"
#include "cli/read_value.h"

namespace lrun::launcher {
namespace {

using enum ValueKind;

// Beyond any machine, and small enough that devices x nodes is an int.
constexpr int kMostWorkersPerNode = 16'384;
constexpr int kMostNodes = 65'536;

void set_devices(const GivenValue& given, LaunchRequest& request) {
  constexpr const char* kAllowed = "; allowed: a count such as 8, a list such as 2,3, auto or -1";
  auto parsed = parse_devices(given.text, kMostWorkersPerNode);
  if (const auto* const problem = std::get_if<DeviceProblem>(&parsed)) {
    refuse(given, problem->what + kAllowed,
           problem->example.empty() ? problem->hint : example(given, problem->example));
  }
  request.devices = setting(given, std::get<DeviceRequest>(std::move(parsed)));
}

void set_workers(const GivenValue& given, LaunchRequest& request) {
  using Kind = DeviceRequest::Kind;
  const std::string word = lower_case(given.text);
  for (const Kind kind : {Kind::kAutoCount, Kind::kCpuCount, Kind::kGpuCount, Kind::kXpuCount}) {
    if (word != text_of(DeviceRequest{kind})) continue;
    request.nproc_per_node = setting(given, DeviceRequest{kind});
    return;
  }
  const auto number = number_in<int>(word);
  if (number && *number >= 1 && *number <= kMostWorkersPerNode) {
    request.nproc_per_node = setting(given, DeviceRequest{Kind::kProcesses, *number});
    return;
  }
  const std::string allowed = "; allowed: 1 to " + std::to_string(kMostWorkersPerNode) + ", auto, cpu, gpu, xpu";
  if (!number) refuse_choice(given, "not a number of workers" + allowed, {"auto", "cpu", "gpu", "xpu"}, "2");
  refuse(given, "no such number of workers" + allowed,
         example(given, *number < 1 ? "1" : std::to_string(kMostWorkersPerNode)));
}

/// 'N' or 'MIN:MAX'.
void set_nodes(const GivenValue& given, LaunchRequest& request) {
  const std::size_t colon = given.text.find(':');
  const auto least = number_in<int>(given.text.substr(0, colon));
  const auto most = colon == std::string::npos ? least : number_in<int>(given.text.substr(colon + 1));
  if (!least || !most || *least < 1 || *most < 1 || *most > kMostNodes) {
    refuse(given, "not a number of nodes; allowed: 1 to " + std::to_string(kMostNodes), example(given, "1"));
  }
  if (*least > *most) refuse(given, "min_nodes is more than max_nodes", example(given, std::to_string(*most)));
  request.num_nodes = setting(given, *most);
  request.min_nodes = *least == *most ? 0 : *least;
}

constexpr NamedValue<std::optional<DeviceKind>> kAccelerators[] = {{"auto", std::nullopt},
                                                                   {"cpu", DeviceKind::kCpu},
                                                                   {"gpu", DeviceKind::kGpu},
                                                                   {"cuda", DeviceKind::kGpu},
                                                                   {"tpu", DeviceKind::kTpu}};

/// torchrun's words for --bind. Both options may be given where they agree.
void set_numa_binding(const GivenValue& given, LaunchRequest& request) {
  constexpr NamedValue<Binding> kTorchrunsBindings[] = {{"node", Binding::kNuma},
                                                        {"socket", Binding::kSocket},
                                                        {"exclusive", Binding::kCore},
                                                        {"core-complex", Binding::kCache}};
  const Binding binding = choice_in(kTorchrunsBindings, given);
  if (request.bind.given() && request.bind.value != binding) {
    refuse(given, "'" + request.bind.origin + "' says otherwise", "give one of them");
  }
  request.bind = setting(given, binding);
}

constexpr Flag kWorkerFlags[] = {
    {.name = "devices",
     .aliases = "num_gpus num_accelerators",
     .value = kRequired,
     .placeholder = "N|LIST|auto|-1",
     .brief = "devices of each node: how many, or which",
     .details = "The devices to use on each node: how many, or which. '8' is the first eight, '2,3' the devices 2 and "
                "3, '2,' only device 2, '-1' all GPUs, and 'auto' all GPUs or, without any, one CPU worker. A GPU may "
                "also be named by its UUID or the beginning of one ('GPU-8f3a'), and so may an instance of a GPU in "
                "MIG mode ('MIG-41c9'). Instances count as devices. On a machine without GPUs a plain count is that "
                "many CPU workers; '-1' and lists are an error there. --num_gpus and --num_accelerators are aliases "
                "for DeepSpeed.",
     .choices = "auto -1",
     .default_value = "one device",
     .apply = set_devices},
    {.name = "nproc-per-node",
     .short_names = "n np",
     .value = kRequired,
     .placeholder = "N",
     .brief = "workers on each node; or auto, cpu, gpu",
     .details = "The workers on each node, counted as torchrun does: a number, 'gpu' (one per GPU), 'xpu' (one per GPU "
                "of Intel), 'cpu' (one per processor) or 'auto' (GPUs, else processors). A number means the same as "
                "--devices with a plain count; lrun refuses the two when they differ. With -H or --hostfile, -n and "
                "-np are totals over all hosts, as with mpirun.",
     .choices = "auto cpu gpu xpu",
     .torchrun_variable = true,
     .apply = set_workers,
     .same_as = "devices"},
    {.name = "num_nodes",
     .aliases = "nnodes",
     .value = kRequired,
     .placeholder = "N|MIN:MAX",
     .brief = "number of nodes",
     .details = "The number of nodes (machines). lrun is started on each with the same options, and --rdzv-endpoint "
                "says where they meet. With a range, MIN:MAX, the job begins as soon as MAX nodes are there, or when "
                "MIN are there and no other has joined for a second.",
     .default_value = "1",
     .torchrun_variable = true,
     .apply = set_nodes},
    {.name = "accelerator",
     .value = kRequired,
     .placeholder = "KIND",
     .brief = "auto, cpu, gpu or tpu",
     .details = "The kind of device: 'gpu' (also spelled 'cuda'), 'cpu' or 'tpu'. 'auto' takes GPUs where the node has "
                "any. 'tpu' implies --strategy tpu.",
     .choices = "auto cpu gpu tpu",
     .noun = "accelerator",
     .default_value = "auto",
     .apply = set_choice<kAccelerators, &LaunchRequest::accelerator>},
    {.name = "isolate-gpus",
     .aliases = "virtual-local-rank",
     .brief = "each worker sees only its own GPU",
     .details = "Each worker finds only its own GPU in CUDA_VISIBLE_DEVICES (HIP_VISIBLE_DEVICES for GPUs of AMD, "
                "ZE_AFFINITY_MASK for those of Intel), and LOCAL_RANK is 0 in all of them, as with torchrun's "
                "--virtual-local-rank. Without it all workers of a node see all of the node's chosen GPUs. Workers on "
                "MIG instances are always isolated: a process can use only one.",
     .torchrun_variable = true,
     .apply = set_switch<&LaunchRequest::isolate_gpus>},
    {.name = "bind",
     .value = kRequired,
     .placeholder = "none|core|numa",
     .details = "The CPUs that each worker may run on, chosen to be close to its GPU. CPU workers are spread evenly. "
                "'numa': all cores of the NUMA node. 'core': cores of its own, an equal part of the NUMA node's. "
                "'cache': the cores that share one cache. 'socket': all cores of the socket. The limits of lrun itself "
                "(affinity, cgroup) are respected. OMP_NUM_THREADS becomes one per core of the worker's share.",
     .choices = "none core cache numa socket",
     .noun = "binding",
     .default_value = "none",
     .apply = set_choice<kBindings, &LaunchRequest::bind>},
    {.name = "numa-binding",
     .value = kRequired,
     .placeholder = "KIND",
     .details = "The same as --bind in torchrun's words: 'node' is numa, 'socket' is socket, 'exclusive' is core and "
                "'core-complex' is cache. numactl is not needed.",
     .choices = "node socket exclusive core-complex",
     .noun = "binding",
     .apply = set_numa_binding,
     .same_as = "bind"},
    {.name = "share-gpus",
     .details = "Use GPUs even if other processes compute on them. Without this option lrun refuses to start on a busy "
                "GPU when GPUs were asked for (with --devices, '--nproc-per-node gpu' or '--accelerator gpu'), and "
                "warns when they were not. A GPU in exclusive mode that is taken cannot be shared.",
     .apply = set_switch<&LaunchRequest::share_gpus>},
};

}  // namespace

std::span<const Flag> worker_flags() { return kWorkerFlags; }

}  // namespace lrun::launcher
