#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <lrun/clip_grad_norm.h>

#include <cmath>
#include <stdexcept>
#include <unordered_set>

namespace lrun {

double clip_grad_norm(const std::vector<at::Tensor>& parameters, double max_norm, double norm_type) {
  if (!(max_norm >= 0)) throw std::invalid_argument("gradients are clipped to a norm of at least 0");
  if (!(norm_type > 0)) throw std::invalid_argument("the type of a norm is a number above 0");
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> gradients;
  std::vector<at::Tensor> norms;
  std::unordered_set<const at::TensorImpl*> seen;
  for (const at::Tensor& parameter : parameters) {
    if (!parameter.grad().defined()) continue;
    if (!seen.insert(parameter.unsafeGetTensorImpl()).second) continue;  // tied weights are one parameter
    const at::Tensor& gradient = parameter.grad();
    const at::Tensor values = gradient.is_sparse() ? gradient.coalesce().values() : gradient;
    if (values.numel() == 0) continue;  // no element is the largest
    gradients.push_back(gradient);
    norms.push_back(at::linalg_vector_norm(values, norm_type, std::nullopt, false, at::kDouble).cpu());
  }
  if (norms.empty()) return 0;
  const double norm = at::linalg_vector_norm(at::stack(norms), norm_type).item<double>();
  constexpr double kTiny = 1e-6;  // torch's, so that the results are
  const double scale = max_norm / (norm + kTiny);
  if (!std::isfinite(norm) || scale >= 1) return norm;
  for (const at::Tensor& gradient : gradients) gradient.mul_(scale);
  return norm;
}

}  // namespace lrun
