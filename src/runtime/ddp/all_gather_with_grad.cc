#include <ATen/ATen.h>
#include <lrun/all_gather_with_grad.h>
#include <lrun/collectives.h>
#include <torch/csrc/autograd/custom_function.h>

#include <stdexcept>
#include <vector>

#include "runtime/collectives/common/rows_of_ranks.h"
#include "runtime/ddp/group_of_forward.h"

namespace lrun {
namespace {

struct GatherFunction : torch::autograd::Function<GatherFunction> {
  using Context = torch::autograd::AutogradContext;

  static at::Tensor forward(Context* context, const at::Tensor& tensor,
                            const c10::intrusive_ptr<detail::GroupOfForward>& group) {
    context->saved_data["group"] = c10::IValue::make_capsule(group);
    context->saved_data["sizes"] = tensor.sizes();
    Collectives& collectives = group->collectives;
    std::vector<std::int64_t> sizes = tensor.sizes().vec();
    sizes[0] *= collectives.world_size();
    at::Tensor all = at::empty(sizes, tensor.options());  // no view: callers may change it in place
    collectives.all_gather(all.view(detail::rows_of_ranks(collectives, tensor.sizes())), tensor.contiguous());
    return all;
  }

  static torch::autograd::variable_list backward(Context* context, const torch::autograd::variable_list& gradients) {
    detail::refuse_double_backward("all_gather_with_grad");
    const auto group =
        c10::static_intrusive_pointer_cast<detail::GroupOfForward>(context->saved_data["group"].toCapsule());
    const auto sizes = context->saved_data["sizes"].toIntVector();
    Collectives& collectives = group->collectives;
    const at::Tensor rows = gradients[0].contiguous().view(detail::rows_of_ranks(collectives, sizes));
    const at::Tensor own = at::empty(sizes, rows.options());
    collectives.reduce_scatter(own, rows, ReduceOp::kSum);
    return {own, {}};
  }
};

}  // namespace

at::Tensor all_gather_with_grad(Collectives& collectives, const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.dim() == 0) {
    throw std::invalid_argument("all_gather_with_grad: the tensor has no dimension of samples");
  }
  if (collectives.world_size() == 1) return tensor;
  return GatherFunction::apply(tensor, c10::make_intrusive<detail::GroupOfForward>(collectives));
}

}  // namespace lrun
