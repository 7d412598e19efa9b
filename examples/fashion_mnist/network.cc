#include "network.h"

#include <ATen/Functions.h>

namespace fashion_mnist {

namespace nn = torch::nn;

void Network::reset() {
  conv1_ = register_module("conv1", nn::Conv2d(nn::Conv2dOptions(1, 16, 3).padding(1)));
  conv2_ = register_module("conv2", nn::Conv2d(nn::Conv2dOptions(16, 32, 3).padding(1)));
  hidden_ = register_module("hidden", nn::Linear(32 * 7 * 7, 128));
  output_ = register_module("output", nn::Linear(128, 10));
}

torch::Tensor Network::forward(torch::Tensor images) {
  torch::Tensor x = torch::max_pool2d(torch::relu(conv1_(images)), 2);  // (batch, 16, 14, 14)
  x = torch::max_pool2d(torch::relu(conv2_(x)), 2);                     // (batch, 32, 7, 7)
  x = torch::relu(hidden_(x.flatten(1)));
  return torch::log_softmax(output_(x), 1);
}

}  // namespace fashion_mnist
