// The options of the group 'Workers and devices': how each value is read, then the rows. Called for the rows of the
// flag table, whose apply() puts a value into the LaunchRequest.
#include <fmt/format.h>

#include "cli/flag_groups.h"
#include "cli/read_value.h"
#include "cluster/allocation.h"

namespace lrun::launcher {
namespace {

using enum ValueKind;

// More than any machine has, and few enough that devices times nodes fits an int.
constexpr int kMostWorkersPerNode = 16'384;

void set_devices(const GivenValue& given, LaunchRequest& request) {
  constexpr const char* kAllowed = "; allowed: a count such as 8, a list such as 2,3, auto or -1";
  auto parsed = parse_devices(given.text, kMostWorkersPerNode);
  if (const auto* const problem = std::get_if<DeviceProblem>(&parsed)) {
    refuse_program_as_value(given);
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
  if (word.find(',') != std::string::npos) {
    const bool is_list = word.find_first_not_of("0123456789,") == std::string::npos;
    refuse(given, "not a number of workers" + allowed,
           is_list ? "'--devices " + word + "' names the devices" : "a blank, and no comma, stands before PROGRAM");
  }
  if (trimmed(given.text).find(' ') != std::string::npos) {
    refuse(given, "not a number of workers" + allowed, "leave out the quotes: options, values and PROGRAM are words");
  }
  if (!number) refuse_choice(given, "not a number of workers" + allowed, {"auto", "cpu", "gpu", "xpu"}, "2");
  refuse(given, "out of range" + allowed, example(given, *number < 1 ? "1" : std::to_string(kMostWorkersPerNode)));
}

/// 'N' or 'MIN:MAX'.
void set_nodes(const GivenValue& given, LaunchRequest& request) {
  const std::size_t colon = given.text.find(':');
  const auto least = number_in<int>(given.text.substr(0, colon));
  const auto most = colon == std::string::npos ? least : number_in<int>(given.text.substr(colon + 1));
  if (!least || !most) refuse_program_as_value(given);
  if (!least || !most || *least < 1 || *most < 1 || *most > kMostNodes) {
    std::string right = "2";
    if (const std::size_t sign = given.text.find_first_of(":-,"); sign != std::string::npos) {
      right = given.text;
      right[sign] = ':';  // sbatch writes '2-4'
      if (right == given.text || right.find_first_not_of("0123456789:") != std::string::npos) right = "2:4";
    }
    refuse(given, "not a number of nodes; allowed: 1 to " + std::to_string(kMostNodes) + ", or MIN:MAX",
           example(given, right));
  }
  if (*least > *most) refuse(given, "MIN is greater than MAX", example(given, fmt::format("{}:{}", *most, *least)));
  request.num_nodes = setting(given, *most);
  request.min_nodes = *least == *most ? 0 : *least;
}

constexpr NamedValue<std::optional<DeviceKind>> kAccelerators[] = {
    {"auto", std::nullopt},     {"cpu", DeviceKind::kCpu}, {"gpu", DeviceKind::kGpu}, {"cuda", DeviceKind::kGpu},
    {"rocm", DeviceKind::kGpu}, {"xpu", DeviceKind::kGpu}, {"tpu", DeviceKind::kTpu}};

/// Messages have the user's word.
void set_accelerator(const GivenValue& given, LaunchRequest& request) {
  set_choice<kAccelerators, &LaunchRequest::accelerator>(given, request);
  request.accelerator_word = given.text == text_of(request.accelerator.value) ? std::string() : given.text;
}

/// Reads torchrun's words for --bind. Both options may be given if they mean the same.
void set_numa_binding(const GivenValue& given, LaunchRequest& request) {
  constexpr NamedValue<Binding> kTorchrunsBindings[] = {{"node", Binding::kNuma},
                                                        {"socket", Binding::kSocket},
                                                        {"exclusive", Binding::kCore},
                                                        {"core-complex", Binding::kCache}};
  const Binding binding = choice_in(kTorchrunsBindings, given);
  if (request.bind.given() && request.bind.value != binding) {
    refuse(given, "contradicts '" + request.bind.origin + "'", "give only one of them");
  }
  request.bind = setting(given, binding);
}

constexpr Flag kWorkerFlags[] = {
    {.name = "devices",
     .aliases = "num-gpus num-accelerators",
     .value = kRequired,
     .placeholder = "N|LIST|auto|-1",
     .brief = "devices of each node: how many, or which",
     .details = "The devices to use on each node: how many, or which. '8' means the first eight, '2,3' the devices 2 "
                "and 3, '2,' only device 2, '-1' all GPUs, and 'auto' all GPUs or, if there are none, one CPU worker. "
                "A GPU or a MIG instance may also be given by its UUID or a prefix of it ('GPU-8f3a', 'MIG-41c9'). "
                "Instances count as devices. On a machine without GPUs a plain count gives that many CPU workers; "
                "'-1' and lists are errors there. --num-gpus and --num-accelerators are aliases for DeepSpeed.",
     .choices = "auto -1",
     .default_value = "one device",
     .apply = set_devices},
    {.name = "nproc-per-node",
     .short_names = "n np",
     .value = kRequired,
     .placeholder = "N",
     .brief = "workers on each node; or auto, cpu, gpu",
     .details = "The workers on each node, as in torchrun: a number, 'gpu' (one per GPU), 'xpu' (one per Intel GPU), "
                "'cpu' (one per CPU) or 'auto' (one per GPU, else per CPU). A number means the same as --devices with "
                "a plain count; giving both with different values is an error. With -H or --hostfile, -n and -np are "
                "totals over all hosts, as with mpirun.",
     .choices = "auto cpu gpu xpu",
     .torchrun_variable = true,
     .apply = set_workers,
     .same_as = "devices"},
    {.name = "num-nodes",
     .aliases = "nnodes",
     .value = kRequired,
     .placeholder = "N|MIN:MAX",
     .brief = "number of nodes",
     .details = "The number of nodes (machines). Start lrun on each of them with the same options; --rdzv-endpoint is "
                "where they find each other. With a range, MIN:MAX, the job begins when MAX nodes have joined, or "
                "when MIN have joined and no other has for a second.",
     .default_value = "1",
     .torchrun_variable = true,
     .apply = set_nodes},
    {.name = "accelerator",
     .value = kRequired,
     .placeholder = "KIND",
     .details = "The kind of device: 'gpu' (or 'cuda', 'rocm', 'xpu'), 'cpu' or 'tpu'. 'auto' uses GPUs if the node "
                "has any. 'tpu' "
                "implies --strategy tpu.",
     .choices = "auto cpu gpu tpu",
     .noun = "accelerator",
     .default_value = "auto",
     .apply = set_accelerator,
     .hint = "'gpu' is any of NVIDIA, AMD and Intel; without this option GPUs are used if there are any"},
    {.name = "isolate-gpus",
     .aliases = "virtual-local-rank",
     .details = "Set CUDA_VISIBLE_DEVICES of each worker to its own GPU (HIP_VISIBLE_DEVICES for AMD, ZE_AFFINITY_MASK "
                "for Intel) and LOCAL_RANK to 0, as torchrun's --virtual-local-rank does. Without it all workers of a "
                "node see all chosen GPUs. Workers on MIG instances are always isolated, because a process can use "
                "only one instance.",
     .torchrun_variable = true,
     .apply = set_switch<&LaunchRequest::isolate_gpus>},
    {.name = "bind",
     .value = kRequired,
     .placeholder = "none|core|numa",
     .details = "Bind each worker to CPUs close to its GPU; CPU workers are spread evenly. 'numa': all cores of the "
                "NUMA node. 'core': cores of its own, an equal share of the NUMA node's. 'cache': the cores that "
                "share one cache. 'socket': all cores of the socket. lrun's own limits (affinity, cgroup) are "
                "respected. OMP_NUM_THREADS becomes the number of the worker's cores.",
     .choices = "none core cache numa socket",
     .noun = "binding",
     .default_value = "none",
     .apply = set_choice<kBindings, &LaunchRequest::bind>},
    {.name = "numa-binding",
     .value = kRequired,
     .placeholder = "KIND",
     .details =
         "torchrun's spelling of --bind: 'node' is numa, 'socket' is socket, 'exclusive' is core, 'core-complex' "
         "is cache. numactl is not needed.",
     .choices = "node socket exclusive core-complex",
     .noun = "binding",
     .apply = set_numa_binding,
     .same_as = "bind"},
    {.name = "share-gpus",
     .details = "Use GPUs even if other processes compute on them. By default a busy GPU is an error when GPUs were "
                "requested (with --devices, '--nproc-per-node gpu' or '--accelerator gpu'), and a warning otherwise. "
                "A busy GPU in exclusive mode cannot be shared.",
     .apply = set_switch<&LaunchRequest::share_gpus>},
};

}  // namespace

std::span<const Flag> worker_flags() { return kWorkerFlags; }

}  // namespace lrun::launcher
