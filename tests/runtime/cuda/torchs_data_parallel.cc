// torch's own DataParallel, as strategies_on_gpus_test.cc compares with it.

#include <ATen/ops/mse_loss.h>
#include <lrun/export.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/parallel/data_parallel.h>

#include <vector>

extern "C" LRUN_EXPORT void lrun_test_data_parallel(torch::nn::Sequential* net, const at::Tensor* data,
                                                    const at::Tensor* target, int gpus);

/// Forward and backward over the first `gpus` GPUs; the gradients are those of `net`.
extern "C" void lrun_test_data_parallel(torch::nn::Sequential* net, const at::Tensor* data, const at::Tensor* target,
                                        int gpus) {
  std::vector<torch::Device> devices;
  for (int index = 0; index < gpus; ++index) {
    devices.emplace_back(torch::kCUDA, static_cast<c10::DeviceIndex>(index));
  }
  const at::Tensor outputs = torch::nn::parallel::data_parallel(net->ptr(), *data, devices);
  at::mse_loss(outputs, *target).backward();
}
