#include "runtime/dp/module_options.h"

#include <torch/nn/modules.h>

#include <array>

namespace lrun::detail {
namespace {

template <class Impl>
void copy_options(const torch::nn::Module& module, torch::nn::Module& copy) {
  const auto& from = dynamic_cast<const Impl&>(module);
  auto& to = dynamic_cast<Impl&>(copy);
  to.options = from.options;
  if constexpr (requires { from.options_base; }) to.options_base = from.options_base;
}

template <class Impl>
bool is_of_class(const torch::nn::Module& module) {
  return dynamic_cast<const Impl*>(&module) != nullptr;
}

struct Row {
  bool (*fits)(const torch::nn::Module& module);
  OptionsCopier copier;
};

template <class... Impls>
constexpr std::array<Row, sizeof...(Impls)> rows_of() {
  return {Row{is_of_class<Impls>, copy_options<Impls>}...};
}

/// All classes of torch::nn that have options; none derives from another.
constexpr auto kRows = rows_of<
    torch::nn::ELUImpl, torch::nn::SELUImpl, torch::nn::HardshrinkImpl, torch::nn::HardtanhImpl,
    torch::nn::LeakyReLUImpl, torch::nn::SoftmaxImpl, torch::nn::SoftminImpl, torch::nn::LogSoftmaxImpl,
    torch::nn::PReLUImpl, torch::nn::ReLUImpl, torch::nn::ReLU6Impl, torch::nn::RReLUImpl, torch::nn::CELUImpl,
    torch::nn::GLUImpl, torch::nn::GELUImpl, torch::nn::SoftplusImpl, torch::nn::SoftshrinkImpl,
    torch::nn::ThresholdImpl, torch::nn::MultiheadAttentionImpl, torch::nn::AdaptiveLogSoftmaxWithLossImpl,
    torch::nn::BatchNorm1dImpl, torch::nn::BatchNorm2dImpl, torch::nn::BatchNorm3dImpl, torch::nn::InstanceNorm1dImpl,
    torch::nn::InstanceNorm2dImpl, torch::nn::InstanceNorm3dImpl, torch::nn::LayerNormImpl,
    torch::nn::LocalResponseNormImpl, torch::nn::CrossMapLRN2dImpl, torch::nn::GroupNormImpl, torch::nn::Conv1dImpl,
    torch::nn::Conv2dImpl, torch::nn::Conv3dImpl, torch::nn::ConvTranspose1dImpl, torch::nn::ConvTranspose2dImpl,
    torch::nn::ConvTranspose3dImpl, torch::nn::CosineSimilarityImpl, torch::nn::PairwiseDistanceImpl,
    torch::nn::DropoutImpl, torch::nn::Dropout2dImpl, torch::nn::Dropout3dImpl, torch::nn::AlphaDropoutImpl,
    torch::nn::FeatureAlphaDropoutImpl, torch::nn::EmbeddingImpl, torch::nn::EmbeddingBagImpl, torch::nn::FoldImpl,
    torch::nn::UnfoldImpl, torch::nn::PixelShuffleImpl, torch::nn::PixelUnshuffleImpl, torch::nn::UpsampleImpl,
    torch::nn::LinearImpl, torch::nn::BilinearImpl, torch::nn::FlattenImpl, torch::nn::UnflattenImpl,
    torch::nn::ReflectionPad1dImpl, torch::nn::ReflectionPad2dImpl, torch::nn::ReflectionPad3dImpl,
    torch::nn::ReplicationPad1dImpl, torch::nn::ReplicationPad2dImpl, torch::nn::ReplicationPad3dImpl,
    torch::nn::ZeroPad1dImpl, torch::nn::ZeroPad2dImpl, torch::nn::ZeroPad3dImpl, torch::nn::ConstantPad1dImpl,
    torch::nn::ConstantPad2dImpl, torch::nn::ConstantPad3dImpl, torch::nn::AvgPool1dImpl, torch::nn::AvgPool2dImpl,
    torch::nn::AvgPool3dImpl, torch::nn::MaxPool1dImpl, torch::nn::MaxPool2dImpl, torch::nn::MaxPool3dImpl,
    torch::nn::AdaptiveAvgPool1dImpl, torch::nn::AdaptiveAvgPool2dImpl, torch::nn::AdaptiveAvgPool3dImpl,
    torch::nn::AdaptiveMaxPool1dImpl, torch::nn::AdaptiveMaxPool2dImpl, torch::nn::AdaptiveMaxPool3dImpl,
    torch::nn::MaxUnpool1dImpl, torch::nn::MaxUnpool2dImpl, torch::nn::MaxUnpool3dImpl,
    torch::nn::FractionalMaxPool2dImpl, torch::nn::FractionalMaxPool3dImpl, torch::nn::LPPool1dImpl,
    torch::nn::LPPool2dImpl, torch::nn::LPPool3dImpl, torch::nn::RNNImpl, torch::nn::LSTMImpl, torch::nn::GRUImpl,
    torch::nn::RNNCellImpl, torch::nn::LSTMCellImpl, torch::nn::GRUCellImpl, torch::nn::TransformerImpl,
    torch::nn::TransformerEncoderImpl, torch::nn::TransformerDecoderImpl, torch::nn::TransformerEncoderLayerImpl,
    torch::nn::TransformerDecoderLayerImpl, torch::nn::L1LossImpl, torch::nn::KLDivLossImpl, torch::nn::MSELossImpl,
    torch::nn::BCELossImpl, torch::nn::HingeEmbeddingLossImpl, torch::nn::MultiMarginLossImpl,
    torch::nn::CosineEmbeddingLossImpl, torch::nn::SmoothL1LossImpl, torch::nn::HuberLossImpl,
    torch::nn::MultiLabelMarginLossImpl, torch::nn::SoftMarginLossImpl, torch::nn::MultiLabelSoftMarginLossImpl,
    torch::nn::TripletMarginLossImpl, torch::nn::TripletMarginWithDistanceLossImpl, torch::nn::CTCLossImpl,
    torch::nn::PoissonNLLLossImpl, torch::nn::MarginRankingLossImpl, torch::nn::NLLLossImpl,
    torch::nn::CrossEntropyLossImpl, torch::nn::BCEWithLogitsLossImpl>();

}  // namespace

OptionsCopier options_copier(const torch::nn::Module& module) {
  for (const Row& row : kRows) {
    if (row.fits(module)) return row.copier;
  }
  return nullptr;
}

}  // namespace lrun::detail
