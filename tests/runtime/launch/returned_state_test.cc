#include "runtime/launch/returned_state.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <lrun/error.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include <string>
#include <tuple>

namespace lrun::detail {
namespace {

std::string packed(const c10::IValue& result, const torch::nn::Module* module = nullptr) {
  std::string bytes;
  pack(result, module, [&bytes](std::string_view more) { bytes += more; });
  return bytes;
}

template <class Result>
Result through(const Result& result) {
  return unpack(packed(result), nullptr).template to<Result>();
}

TEST(ReturnedState, KeepsResultsOfEveryKind) {
  EXPECT_EQ(through<std::int64_t>(-7), -7);
  EXPECT_EQ(through(true), true);
  EXPECT_EQ(through(0.1), 0.1);
  EXPECT_EQ(through(std::string("a\0b", 3)), std::string("a\0b", 3));
  EXPECT_EQ(through(std::vector<double>{1, 2}), (std::vector<double>{1, 2}));
  EXPECT_EQ(through(std::vector<std::string>{"a", "b"}), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(through(std::optional<std::int64_t>(3)), 3);
  EXPECT_EQ(through(std::optional<std::int64_t>()), std::nullopt);
  c10::Dict<std::string, double> map;
  map.insert("loss", 0.5);
  EXPECT_EQ(through(map).at("loss"), 0.5);
  using Rows = std::vector<std::tuple<std::int64_t, double>>;
  EXPECT_EQ(through(Rows{{1, 0.5}, {2, 0.25}}), (Rows{{1, 0.5}, {2, 0.25}}));
  const auto tensor = at::arange(6, at::kBFloat16).view({2, 3});
  EXPECT_TRUE(through(tensor).equal(tensor));
  EXPECT_EQ(through(tensor).scalar_type(), at::kBFloat16);
  EXPECT_TRUE(unpack(packed({}), nullptr).isNone());
}

TEST(ReturnedState, GivesAModuleTheParametersAndBuffersOfAnother) {
  torch::nn::BatchNorm1d there(4);
  torch::nn::BatchNorm1d here(4);
  there->weight.data().normal_();
  there->running_mean.normal_();
  there->num_batches_tracked.fill_(5);
  here->weight.mutable_grad() = at::ones({4});
  EXPECT_EQ(unpack(packed(std::int64_t{9}, there.ptr().get()), here.ptr().get()).toInt(), 9);
  EXPECT_TRUE(here->weight.equal(there->weight));
  EXPECT_TRUE(here->running_mean.equal(there->running_mean));
  EXPECT_EQ(here->num_batches_tracked.item<std::int64_t>(), 5);
  EXPECT_TRUE(here->weight.grad().equal(at::ones({4})));
  EXPECT_TRUE(here->weight.requires_grad());
}

TEST(ReturnedState, KeepsTheOrderOfATransposedParameter) {
  torch::nn::Linear there(2, 3);
  torch::nn::Linear here(2, 3);
  there->weight.set_data(at::arange(6, at::kFloat).view({2, 3}).t());
  unpack(packed({}, there.ptr().get()), here.ptr().get());
  EXPECT_TRUE(here->weight.equal(there->weight));
}

TEST(ReturnedState, IsRefusedByAnotherModule) {
  const torch::nn::Linear there(2, 3);
  const std::string bytes = packed({}, there.ptr().get());
  const auto refusal = [&bytes](torch::nn::Module& module) -> std::string {
    try {
      unpack(bytes, &module);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  torch::nn::Linear wider(2, 4);
  torch::nn::Linear without_bias(torch::nn::LinearOptions(2, 3).bias(false));
  const std::string beginning = "the module here is not the one that the launch trained: ";
  EXPECT_EQ(refusal(*wider), beginning + "parameter 'weight' is Float [4, 2] here and Float [3, 2] there");
  EXPECT_EQ(refusal(*without_bias), beginning + "parameter 'bias' is not here");
}

TEST(ReturnedState, IsRefusedWhenItIsCutOff) {
  const torch::nn::Linear there(2, 3);
  torch::nn::Linear here(2, 3);
  const std::string bytes = packed({}, there.ptr().get());
  EXPECT_THROW(unpack(std::string_view(bytes).substr(0, bytes.size() - 1), here.ptr().get()), Error);
  EXPECT_THROW(unpack(std::string_view(bytes).substr(0, 3), here.ptr().get()), Error);
}

TEST(ReturnedState, IsOfDenseTensorsOnly) {
  torch::nn::Module module;
  module.register_buffer("counts", at::eye(3).to_sparse());
  EXPECT_THROW(packed({}, &module), Unsupported);
}

}  // namespace
}  // namespace lrun::detail
