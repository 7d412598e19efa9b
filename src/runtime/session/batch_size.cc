#include <lrun/batch_size.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <string>

namespace lrun {
namespace {

constexpr std::array<std::string_view, 8> kOneDeviceAProcess = {"ddp",         "ddp_spawn", "ddp_fork",  "ddp_notebook",
                                                                "ddp_sharded", "horovod",   "deepspeed", "tpu"};

void require_positive(std::string_view what, std::int64_t number) {
  if (number >= 1) return;
  throw std::invalid_argument(std::string(what) + " is " + std::to_string(number) + ", less than 1");
}

double factor(std::int64_t reference_batch, std::int64_t effective_batch) {
  require_positive("the reference batch", reference_batch);
  require_positive("the effective batch", effective_batch);
  return static_cast<double>(effective_batch) / static_cast<double>(reference_batch);
}

}  // namespace

std::int64_t effective_batch_size(std::string_view strategy, std::int64_t loader_batch, std::int64_t devices,
                                  std::int64_t nodes, std::int64_t accumulate) {
  require_positive("the loader's batch", loader_batch);
  require_positive("the number of devices", devices);
  require_positive("the number of nodes", nodes);
  require_positive("the number of accumulated batches", accumulate);
  const std::int64_t batch = loader_batch * accumulate;
  if (std::ranges::find(kOneDeviceAProcess, strategy) != kOneDeviceAProcess.end()) return batch * devices * nodes;
  if (strategy == "ddp2") return batch * nodes;
  if (strategy == "dp" && nodes > 1)
    throw std::invalid_argument("'dp' is one process on one node: use 'ddp2' or 'ddp'");
  if (strategy == "single" && devices * nodes > 1) throw std::invalid_argument("'single' has one device: use 'ddp'");
  if (strategy == "dp" || strategy == "single") return batch;
  throw std::invalid_argument("'" + std::string(strategy) + "' is not a strategy");
}

double linear_learning_rate(double learning_rate, std::int64_t reference_batch, std::int64_t effective_batch) {
  return learning_rate * factor(reference_batch, effective_batch);
}

double square_root_learning_rate(double learning_rate, std::int64_t reference_batch, std::int64_t effective_batch) {
  return learning_rate * std::sqrt(factor(reference_batch, effective_batch));
}

}  // namespace lrun
