#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

namespace fashion_mnist {

/// A small convolutional network: two convolutions with pooling, two linear layers.
class Network : public torch::nn::Module {
 public:
  Network();

  /// \param images  (batch, 1, 28, 28), float32
  /// \return  (batch, 10): the logarithm of the probability of each class
  torch::Tensor forward(torch::Tensor images);

 private:
  torch::nn::Conv2d conv1_;
  torch::nn::Conv2d conv2_;
  torch::nn::Linear hidden_;
  torch::nn::Linear output_;
};

}  // namespace fashion_mnist
