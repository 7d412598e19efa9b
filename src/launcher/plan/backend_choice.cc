#include "plan/backend_choice.h"

#include <algorithm>
#include <vector>

#include "base/nearest.h"
#include "base/user_error.h"

namespace lrun::launcher {
namespace {

void check_name(const std::string& name) {
  static const std::vector<std::string> known = {"auto", "nccl", "gloo", "shm", "shm+gloo"};
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  throw choice_error("unknown process group backend '" + name + "'", name, known, "use " + join_words(known, " or "));
}

}  // namespace

Setting<std::string> choose_backend(const Setting<std::string>& asked, const std::string& accelerator, int num_nodes,
                                    GpuVendor vendor) {
  check_name(asked.value);
  if (accelerator == "tpu" && asked.value != "auto" && asked.value != "gloo") {
    throw UserError("process group backend '" + asked.value + "' does not work on TPUs", "leave it out: it is 'xla'");
  }
  if (accelerator == "tpu" && asked.value == "auto") return {"xla", asked.source, asked.origin};
  if (asked.value == "auto") {
    const std::string on_gpus = vendor == GpuVendor::kIntel ? "xccl" : "nccl";  // AMD's RCCL is called nccl, too
    const std::string backend = accelerator == "gpu" ? on_gpus : num_nodes == 1 ? "shm" : "shm+gloo";
    return {backend, asked.source, asked.origin};
  }
  if (asked.value == "nccl" && accelerator == "cpu") {
    throw UserError("process group backend 'nccl' works on GPUs, and this run is on CPUs",
                    num_nodes == 1 ? "use 'shm' or 'gloo', or leave it out" : "use 'shm+gloo', or leave it out");
  }
  if (asked.value == "shm+gloo" && accelerator == "gpu") {
    throw UserError("process group backend 'shm+gloo' is for CPUs, and this run is on GPUs",
                    "use 'nccl', or leave it out");
  }
  if (asked.value == "shm" && (accelerator == "gpu" || num_nodes > 1)) {
    throw UserError("process group backend 'shm' is for CPUs of one node, and this run is on " +
                        (accelerator == "gpu" ? std::string("GPUs") : std::to_string(num_nodes) + " nodes"),
                    accelerator == "gpu" ? "use 'nccl', or leave it out" : "use 'shm+gloo', or leave it out");
  }
  return asked;
}

}  // namespace lrun::launcher
