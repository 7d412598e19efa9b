#include "runtime/collectives/common/row_sizes.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <functional>
#include <numeric>

namespace lrun::detail {

RowSizes RowSizes::equal(int world_size, at::IntArrayRef row) {
  RowSizes sizes;
  sizes.longest = row.vec();
  sizes.sends.assign(static_cast<std::size_t>(world_size), sizes.longest_count());
  sizes.receives = sizes.sends;
  return sizes;
}

std::int64_t RowSizes::longest_count() const {
  return std::accumulate(longest.begin(), longest.end(), std::int64_t{1}, std::multiplies<>());
}

at::Tensor RowSizes::pad(const at::Tensor& input) const {
  const at::NoGradGuard no_grad;
  const auto rows = static_cast<std::int64_t>(sends.size());
  const std::int64_t length = longest_count();
  const at::Tensor flat = input.detach().view({-1});
  if (std::ranges::all_of(sends, [&](std::int64_t count) { return count == length; })) return flat.view({rows, length});
  at::Tensor padded = at::empty({rows, length}, input.options());
  std::int64_t begin = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t count = sends[static_cast<std::size_t>(row)];
    padded[row].narrow(0, 0, count).copy_(flat.narrow(0, begin, count));
    begin += count;
  }
  return padded;
}

void RowSizes::take(const at::Tensor& output, const at::Tensor& padded) const {
  const at::NoGradGuard no_grad;
  const at::Tensor flat = output.detach().view({-1});
  std::int64_t begin = 0;
  for (std::size_t row = 0; row < receives.size(); ++row) {
    const std::int64_t count = receives[row];
    flat.narrow(0, begin, count).copy_(padded[static_cast<std::int64_t>(row)].narrow(0, 0, count));
    begin += count;
  }
}

}  // namespace lrun::detail
