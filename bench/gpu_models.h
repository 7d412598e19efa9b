#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace lrun::bench {

/// A network of bench_runtime_gpu_step. gpu_step.py has the same layers, and calls the same kernels in the same order.
struct GpuNet : torch::nn::Module {
  virtual at::Tensor forward(const at::Tensor& batch) = 0;
  [[nodiscard]] virtual std::vector<std::int64_t> batch_shape() const = 0;
};

/// 4 x (Linear(4096) + ReLU), 1024 samples.
struct WideNet final : GpuNet {
  explicit WideNet(bool is_small) : width(is_small ? 64 : 4096), samples(is_small ? 8 : 1024) {
    for (int layer = 0; layer < 4; ++layer) {
      layers.push_back(register_module("layer" + std::to_string(layer), torch::nn::Linear(width, width)));
    }
  }
  at::Tensor forward(const at::Tensor& batch) override {
    at::Tensor hidden = batch;
    for (auto& layer : layers) hidden = at::relu(layer(hidden));
    return hidden;
  }
  [[nodiscard]] std::vector<std::int64_t> batch_shape() const override { return {samples, width}; }

  std::int64_t width;
  std::int64_t samples;
  std::vector<torch::nn::Linear> layers;
};

/// Two 3 x 3 convolutions beside a shortcut.
struct ResidualBlock final : torch::nn::Module {
  ResidualBlock(std::int64_t inputs, std::int64_t outputs, std::int64_t stride)
      : first(convolution(inputs, outputs, 3, stride)), second(convolution(outputs, outputs, 3, 1)) {
    register_module("first", first);
    register_module("first_norm", first_norm = torch::nn::BatchNorm2d(outputs));
    register_module("second", second);
    register_module("second_norm", second_norm = torch::nn::BatchNorm2d(outputs));
    if (stride == 1 && inputs == outputs) return;
    shortcut = register_module("shortcut", convolution(inputs, outputs, 1, stride));
    shortcut_norm = register_module("shortcut_norm", torch::nn::BatchNorm2d(outputs));
  }
  at::Tensor forward(const at::Tensor& images) {
    const at::Tensor hidden = first_norm(first(images)).relu_();
    at::Tensor output = second_norm(second(hidden));
    output += shortcut ? shortcut_norm(shortcut(images)) : images;
    return output.relu_();
  }
  static torch::nn::Conv2d convolution(std::int64_t inputs, std::int64_t outputs, std::int64_t size,
                                       std::int64_t stride) {
    return torch::nn::Conv2d(
        torch::nn::Conv2dOptions(inputs, outputs, size).stride(stride).padding(size / 2).bias(false));
  }

  torch::nn::Conv2d first;
  torch::nn::Conv2d second;
  torch::nn::BatchNorm2d first_norm = nullptr;
  torch::nn::BatchNorm2d second_norm = nullptr;
  torch::nn::Conv2d shortcut = nullptr;
  torch::nn::BatchNorm2d shortcut_norm = nullptr;
};

/// ResNet-18 on 64 images of 224 x 224.
struct ResidualNet final : GpuNet {
  explicit ResidualNet(bool is_small) : samples(is_small ? 2 : 64), side(is_small ? 32 : 224) {
    register_module("stem", stem);
    register_module("stem_norm", stem_norm);
    std::int64_t inputs = 64;
    for (const std::int64_t outputs : {64, 128, 256, 512}) {
      for (const std::int64_t stride : {outputs == 64 ? 1 : 2, 1}) {
        blocks.push_back(register_module("block" + std::to_string(blocks.size()),
                                         std::make_shared<ResidualBlock>(inputs, outputs, stride)));
        inputs = outputs;
      }
    }
    register_module("last", last);
  }
  at::Tensor forward(const at::Tensor& batch) override {
    at::Tensor hidden = at::max_pool2d(stem_norm(stem(batch)).relu_(), 3, 2, 1);
    for (auto& block : blocks) hidden = block->forward(hidden);
    return last(at::adaptive_avg_pool2d(hidden, {1, 1}).flatten(1));
  }
  [[nodiscard]] std::vector<std::int64_t> batch_shape() const override { return {samples, 3, side, side}; }

  std::int64_t samples;
  std::int64_t side;
  torch::nn::Conv2d stem{torch::nn::Conv2dOptions(3, 64, 7).stride(2).padding(3).bias(false)};
  torch::nn::BatchNorm2d stem_norm{64};
  std::vector<std::shared_ptr<ResidualBlock>> blocks;
  torch::nn::Linear last{512, 1000};
};

/// Attention and a perceptron, each behind a norm and beside a shortcut.
struct EncoderLayer final : torch::nn::Module {
  EncoderLayer(std::int64_t width, std::int64_t head_count)
      : heads(head_count),
        attention_norm(torch::nn::LayerNormOptions({width})),
        queries(width, 3 * width),
        attended(width, width),
        wide_norm(torch::nn::LayerNormOptions({width})),
        wide(width, 4 * width),
        narrow(4 * width, width) {
    register_module("attention_norm", attention_norm);
    register_module("queries", queries);
    register_module("attended", attended);
    register_module("wide_norm", wide_norm);
    register_module("wide", wide);
    register_module("narrow", narrow);
  }
  at::Tensor forward(const at::Tensor& tokens) {
    const at::Tensor hidden = tokens + attended(attention(queries(attention_norm(tokens))));
    return hidden + narrow(at::gelu(wide(wide_norm(hidden))));
  }
  /// \param projected  (samples, length, 3 width). \return (samples, length, width).
  [[nodiscard]] at::Tensor attention(const at::Tensor& projected) const {
    const auto parts = projected.unflatten(-1, {3, heads, -1}).permute({2, 0, 3, 1, 4}).unbind(0);
    return at::scaled_dot_product_attention(parts[0], parts[1], parts[2]).transpose(1, 2).flatten(2);
  }

  std::int64_t heads;
  torch::nn::LayerNorm attention_norm;
  torch::nn::Linear queries;
  torch::nn::Linear attended;
  torch::nn::LayerNorm wide_norm;
  torch::nn::Linear wide;
  torch::nn::Linear narrow;
};

/// 4 layers of width 512 with 8 heads, 32 samples of 256 tokens.
struct EncoderNet final : GpuNet {
  explicit EncoderNet(bool is_small) : samples(is_small ? 2 : 32), length(is_small ? 16 : 256) {
    if (is_small) width = 64;
    for (int layer = 0; layer < 4; ++layer) {
      layers.push_back(
          register_module("layer" + std::to_string(layer), std::make_shared<EncoderLayer>(width, width / 64)));
    }
  }
  at::Tensor forward(const at::Tensor& batch) override {
    at::Tensor hidden = batch;
    for (auto& layer : layers) hidden = layer->forward(hidden);
    return hidden;
  }
  [[nodiscard]] std::vector<std::int64_t> batch_shape() const override { return {samples, length, width}; }

  std::int64_t samples;
  std::int64_t length;
  std::int64_t width = 512;
  std::vector<std::shared_ptr<EncoderLayer>> layers;
};

/// \throws std::invalid_argument  an unknown name.
inline std::shared_ptr<GpuNet> make_net(const std::string& name, bool is_small) {
  if (name == "mlp") return std::make_shared<WideNet>(is_small);
  if (name == "resnet18") return std::make_shared<ResidualNet>(is_small);
  if (name == "encoder") return std::make_shared<EncoderNet>(is_small);
  throw std::invalid_argument("unknown model '" + name + "'");
}

}  // namespace lrun::bench
