#include <ATen/core/grad_mode.h>
#include <lrun/collectives.h>
#include <lrun/optimizer.h>

#include <stdexcept>
#include <string>

namespace lrun::detail {

at::Tensor mean_loss(const std::function<at::Tensor()>& closure, Collectives* collectives) {
  at::Tensor loss;
  {
    const at::AutoGradMode enabled(true);  // torch's optimizers disable it
    loss = closure();
  }
  if (!loss.defined()) throw std::invalid_argument("the closure of step() returned no loss");
  if (loss.numel() != 1) {
    throw std::invalid_argument("the closure of step() returned a loss of " + std::to_string(loss.numel()) +
                                " elements, not of one");
  }
  const at::NoGradGuard no_grad;
  at::Tensor mean = loss.detach().clone().reshape({});
  if (collectives != nullptr) collectives->all_reduce(mean, ReduceOp::kAverage)->wait();
  return mean;
}

}  // namespace lrun::detail
