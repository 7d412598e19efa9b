// In: gradients, batches and parameters of the steps of one model. Out: warnings, or RankMismatch on all ranks. Called
// by GradientSync at the end of each backward().
#include "runtime/ddp/training_checks.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <lrun/error.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <map>
#include <string_view>
#include <utility>

#include "base/crc32c.h"
#include "base/message.h"
#include "base/nearest.h"

namespace lrun::detail {
namespace {

constexpr double kDrift = 1e-3;  // of a parameter's largest element: more than rounding explains
constexpr std::size_t kMostNamed = 3;

std::uint32_t checksum(const at::Tensor& tensor, std::uint32_t before) {
  if (!tensor.defined()) return before;
  const at::Tensor dense = tensor.layout() == at::kStrided ? tensor.detach() : tensor.detach().to_dense();
  const at::Tensor bytes = dense.cpu().contiguous();
  if (bytes.numel() == 0) return before;
  return crc32c({static_cast<const char*>(bytes.const_data_ptr()), bytes.nbytes()}, before);
}

std::string joined(const std::vector<std::string>& names) { return join_first(names, kMostNamed); }

bool differs(const std::vector<std::vector<std::int64_t>>& rows, std::size_t column) {
  return std::ranges::any_of(rows, [&](const auto& row) { return row[column] != rows.front()[column]; });
}

std::string difference_text(const std::string& name, std::int64_t step, std::int64_t rank, double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2g", share);
  return "parameter '" + name + "' is not the same on all ranks after " +
         (step == 2 ? "the first update" : std::to_string(step - 1) + " updates") + ": rank " + std::to_string(rank) +
         " differs from rank 0, by up to " + text + " of its largest element on some rank";
}

}  // namespace

TrainingChecks::TrainingChecks(std::vector<NamedTensor> parameters, Collectives& collectives, GuardOptions options)
    : parameters_(std::move(parameters)), collectives_(collectives), options_(std::move(options)) {
  for (std::size_t index = 0; index < parameters_.size(); ++index) {
    if (parameters_[index].tensor.requires_grad()) unused_.push_back(index);
  }
  batches_.resize(static_cast<std::size_t>(collectives_.world_size()));
}

bool TrainingChecks::compares_batches() const {
  return collectives_.world_size() > 1 && !parameters_.empty() && steps_ < options_.compare_batches_for;
}

bool TrainingChecks::looks_for_unused() const { return !unused_.empty() && steps_ < options_.name_unused_after; }

void TrainingChecks::look_at_batch(const std::vector<at::Tensor>& tensors) {
  batch_ = {};
  for (const auto& tensor : tensors) {
    if (tensor.defined() && tensor.numel() > 0) batch_ = {Fingerprint::Of::kBatch, checksum(tensor, batch_.sum)};
  }
}

void TrainingChecks::look_at_gradients(const at::Tensor& gradients) {
  if (!compares_batches() || batch_.of == Fingerprint::Of::kBatch) return;
  if (!gradients.any().item<bool>()) return;  // zeros are those of many batches, or of none
  batch_ = {Fingerprint::Of::kGradients, checksum(gradients, batch_.sum)};
}

void TrainingChecks::end_step() {
  const at::NoGradGuard no_grad;
  const bool batches = compares_batches();
  const std::int64_t step = steps_ + 1;
  if (collectives_.world_size() > 1 && !parameters_.empty()) {
    const std::int64_t every = options_.compare_parameters_every;
    const bool parameters = every > 0 && (step == 2 || step % every == 0);  // wrap() made the first ones equal
    if (parameters || batches) compare(step, parameters, batches);
  }
  if (looks_for_unused()) name_unused(step);
  steps_ = step;
}

std::int64_t TrainingChecks::Fingerprint::number() const { return (static_cast<std::int64_t>(of) << 32) + sum; }

void TrainingChecks::compare(std::int64_t step, bool parameters, bool batches) {
  std::uint32_t sum = 0;
  if (parameters) {
    for (const auto& parameter : parameters_) sum = checksum(parameter.tensor, sum);
  }
  const auto rows = gather({sum, std::exchange(batch_, {}).number()});
  if (batches) {
    for (std::size_t rank = 0; rank < rows.size(); ++rank) batches_[rank].push_back(rows[rank][1]);
    if (step == options_.compare_batches_for) name_identical_batches();
  }
  if (parameters && differs(rows, 0)) report_different_parameters(step);
}

void TrainingChecks::name_identical_batches() const {
  const std::int64_t nothing = Fingerprint().number();
  const std::int64_t first_of_gradients = Fingerprint{Fingerprint::Of::kGradients, 0}.number();
  std::map<std::vector<std::int64_t>, std::vector<std::string>> ranks_with;
  for (std::size_t rank = 0; rank < batches_.size(); ++rank) {
    const bool seen = std::ranges::find(batches_[rank], nothing) == batches_[rank].end();
    if (seen) ranks_with[batches_[rank]].push_back(std::to_string(rank));
  }
  for (const auto& [batches, ranks] : ranks_with) {
    if (ranks.size() < 2) continue;
    const bool of_gradients = std::ranges::any_of(batches, [&](auto number) { return number >= first_of_gradients; });
    warn("ranks " + joined(ranks) + (of_gradients ? " computed identical gradients" : " got identical batches") +
         " in the first " + std::to_string(batches.size()) +
         " steps, so that they do the same work: read through session.loader(), or give each rank its own part");
  }
}

void TrainingChecks::report_different_parameters(std::int64_t step) {
  std::vector<std::int64_t> sums;
  for (const auto& parameter : parameters_) sums.push_back(checksum(parameter.tensor, 0));
  const auto rows = gather(sums);
  std::string drift;  // of the first parameter: a later one may differ by more
  for (std::size_t index = 0; index < parameters_.size(); ++index) {
    const auto other = std::ranges::find_if(rows, [&](const auto& row) { return row[index] != rows[0][index]; });
    if (other == rows.end()) continue;
    const double share = share_of_difference(parameters_[index].tensor);
    const std::string what = difference_text(parameters_[index].name, step, other - rows.begin(), share);
    if (share > kDrift) throw RankMismatch(what + "; something changes parameters on some ranks only");
    if (drift.empty()) drift = what;
  }
  if (!std::exchange(drift_was_said_, true)) warn(drift + "; do the ranks run on unlike processors?");
}

double TrainingChecks::share_of_difference(const at::Tensor& parameter) {
  const at::Tensor mine = parameter.detach().contiguous();
  at::Tensor rank_zeros = mine.clone();
  collectives_.broadcast(rank_zeros, 0);
  const auto numbers_of = [](const at::Tensor& tensor) {
    return (tensor.is_complex() ? at::view_as_real(tensor) : tensor).to(at::kDouble);
  };
  const auto largest_of = [](const at::Tensor& numbers) { return numbers.abs().max(); };
  const at::Tensor difference_here = largest_of(numbers_of(mine) - numbers_of(rank_zeros));
  auto share = (difference_here / largest_of(numbers_of(rank_zeros))).nan_to_num(1, 1, 1);
  share = share.masked_fill(difference_here == 0, 0).view({1});  // 0 / 0 where rank 0's are all zero
  collectives_.all_reduce(share, ReduceOp::kMax)->wait();
  return share.item<double>();
}

void TrainingChecks::name_unused(std::int64_t step) {
  std::erase_if(unused_, [this](std::size_t index) { return parameters_[index].tensor.grad().defined(); });
  if (unused_.empty() || step < options_.name_unused_after) return;
  std::vector<std::string> names;
  for (const auto index : unused_) names.push_back("'" + parameters_[index].name + "'");
  warn((names.size() == 1 ? "parameter " : "parameters ") + joined(names) + " got no gradient in the first " +
       std::to_string(step) + " steps: not used in the loss?");
}

std::vector<std::vector<std::int64_t>> TrainingChecks::gather(const std::vector<std::int64_t>& numbers) {
  const at::Tensor input = at::tensor(numbers, at::kLong).to(parameters_.front().tensor.device());
  at::Tensor output = at::empty({collectives_.world_size(), input.size(0)}, input.options());
  collectives_.all_gather(output, input);
  output = output.cpu();
  std::vector<std::vector<std::int64_t>> rows;
  for (std::int64_t rank = 0; rank < output.size(0); ++rank) {
    const auto* row = output[rank].const_data_ptr<std::int64_t>();
    rows.emplace_back(row, row + input.size(0));
  }
  return rows;
}

/// An exception would end backward() on this rank alone.
void TrainingChecks::warn(const std::string& text) const {
  if (collectives_.rank() != 0) return;
  std::string line = message_line(Severity::kWarning, text);
  if (options_.warn) {
    try {
      return options_.warn(text);
    } catch (const std::exception& error) {
      line += message_line(Severity::kWarning, std::string("GuardOptions::warn threw: ") + error.what());
    } catch (...) {
      line += message_line(Severity::kWarning, "GuardOptions::warn threw what is no std::exception");
    }
  }
  std::cerr << line << std::flush;
}

namespace {

template <class Failure>
std::exception_ptr with_step(const Failure& failure, std::int64_t step) {
  const std::string number = std::to_string(step);
  const bool left = std::string_view(failure.what()).find(" left the group before ") != std::string_view::npos;
  return std::make_exception_ptr(
      Failure(std::string(failure.what()) + (left ? "; it ran fewer steps: this rank is in step " + number
                                                  : "; this rank was in training step " + number)));
}

}  // namespace

std::exception_ptr in_step(const std::exception_ptr& failure, std::int64_t step) {
  try {
    std::rethrow_exception(failure);
  } catch (const PeerLost& lost) {
    return with_step(lost, step);
  } catch (const CollectiveTimeout& timeout) {
    return with_step(timeout, step);
  } catch (const CollectiveMismatch& mismatch) {
    return with_step(mismatch, step);
  } catch (...) {
    return failure;
  }
}

}  // namespace lrun::detail
