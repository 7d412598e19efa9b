// In: averaged gradients of a scaled loss. Out: gradients without the scale and a step, or none on any rank. Implements
// <lrun/grad_scaler.h>.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <lrun/collectives.h>
#include <lrun/error.h>
#include <lrun/grad_scaler.h>
#include <torch/optim/optimizer.h>
#include <torch/serialize/input-archive.h>
#include <torch/serialize/output-archive.h>

#include <cmath>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace lrun {
namespace {

// Those of torch's state_dict().
constexpr const char* kScale = "scale";
constexpr const char* kGrowthFactor = "growth_factor";
constexpr const char* kBackoffFactor = "backoff_factor";
constexpr const char* kGrowthInterval = "growth_interval";
constexpr const char* kGrowthTracker = "_growth_tracker";

/// A scale of float16 gradients is a factor, and one that float32 can hold.
std::string problem_of(const GradScalerOptions& options) {
  const auto scale = static_cast<float>(options.init_scale);
  if (!(scale > 0) || !std::isfinite(scale)) return "the scale has to be a finite number above 0";
  if (!(options.growth_factor > 1)) return "the growth factor has to be above 1";
  if (!(options.backoff_factor > 0 && options.backoff_factor < 1))
    return "the backoff factor has to be between 0 and 1";
  if (options.growth_interval < 1) return "the growth interval has to be at least one step";
  return {};
}

/// The values of all gradients that the kernel takes at once: those of one device and dtype.
using GradientsByKind = std::map<std::pair<std::string, at::ScalarType>, std::vector<at::Tensor>>;

GradientsByKind gradients_of(const torch::optim::Optimizer& optimizer) {
  std::vector<at::Tensor> parameters;
  for (const auto& group : optimizer.param_groups()) {
    parameters.insert(parameters.end(), group.params().begin(), group.params().end());
  }
  GradientsByKind gradients;
  for (const at::Tensor& parameter : detail::distinct(std::move(parameters))) {
    const at::Tensor& gradient = parameter.grad();
    if (!gradient.defined()) continue;
    if (gradient.scalar_type() == at::kHalf) {
      throw std::invalid_argument(
          "a gradient of float16 cannot be unscaled: keep the parameters in float32, and run the forward under "
          "autocast");
    }
    const at::Tensor values = gradient.is_sparse() ? gradient._values() : gradient;
    gradients[{values.device().str(), values.scalar_type()}].push_back(values);
  }
  return gradients;
}

/// \return whether a gradient is not finite.
bool unscale_all(const GradientsByKind& gradients, float scale) {
  std::vector<at::Tensor> found;
  for (const auto& [kind, values] : gradients) {
    const auto options = values.front().options().dtype(at::kFloat).layout(at::kStrided);
    found.push_back(at::zeros({}, options));
    at::_amp_foreach_non_finite_check_and_unscale_(values, found.back(), at::full({}, 1.0 / double{scale}, options));
  }
  bool is_found = false;
  for (const at::Tensor& one : found) is_found = is_found || one.item<float>() != 0;  // waits for the GPU
  return is_found;
}

}  // namespace

GradScaler::GradScaler(Collectives& collectives, const GradScalerOptions& options)
    : collectives_(&collectives), options_(options), scale_(static_cast<float>(options.init_scale)) {
  const std::string problem = problem_of(options);
  if (!problem.empty()) throw std::invalid_argument("GradScaler: " + problem);
}

at::Tensor GradScaler::scale(const at::Tensor& loss) const {
  if (!options_.enabled) return loss;
  return loss * at::full({}, scale_, loss.options().dtype(at::kFloat).requires_grad(false));  // 65536 is no float16
}

void GradScaler::unscale(torch::optim::Optimizer& optimizer) {
  if (!options_.enabled) return;
  if (const auto found = checks_.find(&optimizer); found != checks_.end()) {
    throw std::logic_error(found->second.stepped ? "GradScaler: unscale() is called after step(): call it before"
                                                 : "GradScaler: unscale() is called twice before update()");
  }
  const at::NoGradGuard no_grad;
  const bool found_inf = any_rank(unscale_all(gradients_of(optimizer), scale_));
  checks_[&optimizer].found_inf = found_inf;
}

/// Averages are equal on all ranks, but gradients may have been set by the program, or not be averaged.
bool GradScaler::any_rank(bool found_inf) const {
  if (collectives_->world_size() == 1) return found_inf;
  const double own = scale_;
  const at::Tensor most = at::tensor({found_inf ? 1.0 : 0.0, own, -own}, at::kDouble);
  collectives_->all_reduce(most, ReduceOp::kMax)->wait();
  const auto* numbers = most.const_data_ptr<double>();
  if (numbers[1] != -numbers[2]) {
    throw RankMismatch("GradScaler: the scales of the ranks go from " + std::to_string(-numbers[2]) + " to " +
                       std::to_string(numbers[1]) + ": give all ranks the same options, and load the same state");
  }
  return numbers[0] != 0;
}

bool GradScaler::step(torch::optim::Optimizer& optimizer) {
  return step_if_finite(optimizer, [&] { optimizer.step(); });
}

bool GradScaler::step_if_finite(torch::optim::Optimizer& optimizer, const std::function<void()>& step) {
  if (!options_.enabled) {
    step();
    return true;
  }
  if (!checks_.contains(&optimizer)) unscale(optimizer);
  Check& check = checks_.at(&optimizer);
  if (check.stepped) throw std::logic_error("GradScaler: step() is called twice before update()");
  if (!check.found_inf) step();
  check.stepped = true;
  return !check.found_inf;
}

// As the kernel of torch, which keeps the scale within float32.
void GradScaler::update() {
  if (!options_.enabled) return;
  if (checks_.empty()) throw std::logic_error("GradScaler: update() is called without step() before");
  bool found_inf = false;
  for (const auto& [optimizer, check] : checks_) found_inf = found_inf || check.found_inf;
  checks_.clear();
  if (found_inf) {
    scale_ = static_cast<float>(scale_ * options_.backoff_factor);
    growth_tracker_ = 0;
  } else if (++growth_tracker_ == options_.growth_interval) {
    const auto grown = static_cast<float>(scale_ * options_.growth_factor);
    if (std::isfinite(grown)) scale_ = grown;
    growth_tracker_ = 0;
  }
}

double GradScaler::get_scale() const { return options_.enabled ? scale_ : 1; }

void GradScaler::save(torch::serialize::OutputArchive& archive) const {
  if (!options_.enabled) return;
  archive.write(kScale, c10::IValue(double{scale_}));
  archive.write(kGrowthFactor, c10::IValue(options_.growth_factor));
  archive.write(kBackoffFactor, c10::IValue(options_.backoff_factor));
  archive.write(kGrowthInterval, c10::IValue(options_.growth_interval));
  archive.write(kGrowthTracker, c10::IValue(growth_tracker_));
}

void GradScaler::load(torch::serialize::InputArchive& archive) {
  if (!options_.enabled) return;
  c10::IValue scale, growth, backoff, interval, tracker;
  const bool has_all = archive.try_read(kScale, scale) && archive.try_read(kGrowthFactor, growth) &&
                       archive.try_read(kBackoffFactor, backoff) && archive.try_read(kGrowthInterval, interval) &&
                       archive.try_read(kGrowthTracker, tracker);
  if (!has_all || !scale.isDouble() || !growth.isDouble() || !backoff.isDouble() || !interval.isInt() ||
      !tracker.isInt()) {
    throw CheckpointError("the archive has no state of a GradScaler, or that of one that was not enabled");
  }
  const GradScalerOptions options{.init_scale = scale.toDouble(),
                                  .growth_factor = growth.toDouble(),
                                  .backoff_factor = backoff.toDouble(),
                                  .growth_interval = interval.toInt()};
  const std::string problem = problem_of(options);
  if (!problem.empty()) throw CheckpointError("the archive's state of a GradScaler cannot be used: " + problem);
  options_ = options;
  scale_ = static_cast<float>(options.init_scale);
  growth_tracker_ = tracker.toInt();
}

}  // namespace lrun
