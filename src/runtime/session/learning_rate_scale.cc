#include <lrun/error.h>
#include <lrun/optimizer.h>
#include <torch/optim/optimizer.h>
#include <torch/serialize/input-archive.h>
#include <torch/serialize/output-archive.h>

#include <iostream>
#include <string>
#include <vector>

#include "runtime/session/banner.h"

namespace lrun {
namespace {

constexpr const char* kFactor = "lrun_learning_rate_factor";  // in an archive of the optimizer

double rate_of(const torch::optim::OptimizerOptions& options) {
  try {
    return options.get_lr();
  } catch (const c10::Error&) {
    throw Unsupported(
        "the options of this optimizer do not override get_lr() and set_lr(), and strategy 'horovod' scales the "
        "learning rate: override them, or set SessionOptions::scale_learning_rate to false");
  }
}

std::vector<double> rates_of(const torch::optim::Optimizer& optimizer) {
  std::vector<double> rates;
  for (const auto& group : optimizer.param_groups()) rates.push_back(rate_of(group.options()));
  return rates;
}

void multiply(torch::optim::Optimizer& optimizer, int factor, int divisor) {
  for (auto& group : optimizer.param_groups()) {
    group.options().set_lr(rate_of(group.options()) * factor / divisor);
  }
}

/// That the rates of an archive were multiplied by.
int factor_of(torch::serialize::InputArchive& archive) {
  c10::IValue value;
  if (!archive.try_read(kFactor, value)) return 1;
  if (!value.isInt() || value.toInt() < 1) {
    throw CheckpointError("the archive of the optimizer does not say what its learning rates were multiplied by");
  }
  return static_cast<int>(value.toInt());
}

}  // namespace

void LearningRateScale::apply(torch::optim::Optimizer& optimizer) const {
  if (factor == 1) return;
  const std::vector<double> before = rates_of(optimizer);
  multiply(optimizer, factor, 1);
  optimizer.defaults().set_lr(rate_of(optimizer.defaults()) * factor);
  if (says) std::cerr << detail::describe_learning_rates(before, rates_of(optimizer), factor) + "\n" << std::flush;
}

void LearningRateScale::save(torch::serialize::OutputArchive& archive) const {
  if (factor != 1) archive.write(kFactor, c10::IValue(factor));
}

void LearningRateScale::load(torch::serialize::InputArchive& archive, torch::optim::Optimizer& optimizer) const {
  const int saved = factor_of(archive);
  if (saved == factor) return;
  const std::vector<double> before = rates_of(optimizer);
  multiply(optimizer, factor, saved);
  if (says) std::cerr << detail::describe_loaded_rates(before, rates_of(optimizer), saved, factor) + "\n" << std::flush;
}

}  // namespace lrun
