// In: one rank's input, weight and bias. Out: normalised values with gradients, and statistics over all ranks. Called
// by SyncBatchNorm.
#include "runtime/ddp/sync_batch_norm_function.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <vector>

#include "runtime/ddp/group_of_forward.h"

namespace lrun::detail {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Statistics of half precision are computed in float, as torch does.
at::ScalarType precise(at::ScalarType dtype) { return dtype == at::kDouble ? at::kDouble : at::kFloat; }

/// All dimensions but that of the features.
std::vector<std::int64_t> other_dimensions(const at::Tensor& input) {
  std::vector<std::int64_t> dimensions = {0};
  for (std::int64_t dimension = 2; dimension < input.dim(); ++dimension) dimensions.push_back(dimension);
  return dimensions;
}

/// One number a feature, shaped to be combined with `input`.
at::Tensor spread(const at::Tensor& values, const at::Tensor& input) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(input.dim()), 1);
  sizes[1] = values.numel();
  return values.view(sizes);
}

struct Normalise : torch::autograd::Function<Normalise> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, const at::Tensor& weight,
                            const at::Tensor& bias, const at::Tensor& mean, const at::Tensor& inverse_deviation,
                            double count, const c10::intrusive_ptr<GroupOfForward>& group) {
    context->save_for_backward({input, weight, mean, inverse_deviation});
    context->saved_data["count"] = count;
    context->saved_data["group"] = c10::IValue::make_capsule(group);
    const at::Tensor output =
        (input.to(mean.scalar_type()) - spread(mean, input)) * spread(weight * inverse_deviation, input);
    return (output + spread(bias, input)).to(input.scalar_type());
  }

  // With L the sum of all ranks' losses, xhat the normalised input and N the count:
  //   dL/dx = (dy − Σdy/N − xhat · Σ(dy · xhat)/N) · weight / deviation, both sums over the values of all ranks.
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    refuse_double_backward("SyncBatchNorm");
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& input = saved[0];
    const at::Tensor& weight = saved[1];
    const at::Tensor& inverse_deviation = saved[3];
    const double count = context->saved_data["count"].toDouble();
    const auto group = c10::static_intrusive_pointer_cast<GroupOfForward>(context->saved_data["group"].toCapsule());
    const auto dimensions = other_dimensions(input);
    const at::Tensor gradient = gradients[0].to(inverse_deviation.scalar_type());
    const at::Tensor normalised =
        (input.to(gradient.scalar_type()) - spread(saved[2], input)) * spread(inverse_deviation, input);
    const at::Tensor own = at::stack({gradient.sum(dimensions), (gradient * normalised).sum(dimensions)});
    const at::Tensor all = own.clone();
    group->collectives.all_reduce(all, ReduceOp::kSum)->wait();
    const at::Tensor input_gradient =
        (gradient - spread(all[0] / count, input) - normalised * spread(all[1] / count, input)) *
        spread(weight * inverse_deviation, input);
    // The ranks' own sums: GradientSync averages them like all other gradients.
    return {input_gradient.to(input.scalar_type()),
            own[1].to(weight.scalar_type()),
            own[0].to(weight.scalar_type()),
            {},
            {},
            {},
            {}};
  }
};

}  // namespace

GlobalStatistics global_statistics(const at::Tensor& input, Collectives& collectives) {
  const at::NoGradGuard no_grad;
  const std::int64_t features = input.size(1);
  const auto options = input.options().dtype(precise(input.scalar_type())).requires_grad(false);
  const auto count = static_cast<double>(features == 0 ? 0 : input.numel() / features);
  at::Tensor own = at::zeros({2 * features + 1}, options);
  if (count > 0) {
    const auto [variance, mean] =
        at::var_mean(input.to(options.dtype()), other_dimensions(input), /*correction=*/at::Scalar(0));
    own.narrow(0, 0, features).copy_(mean);
    own.narrow(0, features, features).copy_(variance * count);
    own[2 * features].fill_(count);
  }
  at::Tensor all = at::empty({collectives.world_size(), 2 * features + 1}, options);
  collectives.all_gather(all, own);
  // Chan, Golub and LeVeque (1979): exact where sums of squares would cancel.
  const at::Tensor counts = all.narrow(1, 2 * features, 1);
  const at::Tensor means = all.narrow(1, 0, features);
  const double whole = counts.sum().item<double>();
  const at::Tensor mean = (means * counts).sum(0) / whole;
  const at::Tensor squares = all.narrow(1, features, features).sum(0) + ((means - mean).square() * counts).sum(0);
  return {mean, squares / whole, whole};
}

at::Tensor normalise(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                     const GlobalStatistics& statistics, double eps, Collectives& collectives) {
  const at::Tensor scale = weight.defined() ? weight : at::ones_like(statistics.mean);
  const at::Tensor shift = bias.defined() ? bias : at::zeros_like(statistics.mean);
  return Normalise::apply(input, scale, shift, statistics.mean, (statistics.variance + eps).rsqrt(), statistics.count,
                          c10::make_intrusive<GroupOfForward>(collectives));
}

}  // namespace lrun::detail
