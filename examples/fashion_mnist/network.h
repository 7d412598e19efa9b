#pragma once

#include <torch/nn/cloneable.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

namespace fashion_mnist {

/// A small convolutional network: two convolutions with pooling, two linear layers. Where a process has several devices
/// (--strategy dp), each has a clone.
class Network : public torch::nn::Cloneable<Network> {
 public:
  Network() { reset(); }
  void reset() final;

  /// \param images  (batch, 1, 28, 28), float32
  /// \return  (batch, 10): the logarithm of the probability of each class
  torch::Tensor forward(torch::Tensor images);

 private:
  torch::nn::Conv2d conv1_{nullptr};
  torch::nn::Conv2d conv2_{nullptr};
  torch::nn::Linear hidden_{nullptr};
  torch::nn::Linear output_{nullptr};
};

}  // namespace fashion_mnist
