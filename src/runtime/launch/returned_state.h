#pragma once

#include <ATen/core/ivalue.h>

#include <functional>
#include <string>
#include <string_view>

namespace torch::nn {
class Module;
}

namespace lrun::detail {

/// The returned state of a launch: the function's result, and the parameters and buffers of `module` (nullptr: none).
///
/// Written piece by piece: tensors of the module are not copied together first.
/// \throws lrun::Unsupported  a parameter or buffer that is not dense; names it. c10::Error  a result that cannot be
///                            written.
void pack(const c10::IValue& result, const torch::nn::Module* module,
          const std::function<void(std::string_view)>& write);

/// Gives `module` (nullptr: none) the state, and returns the result.
/// \throws lrun::Error  the module here has other parameters or buffers than the one that was packed; names the first.
c10::IValue unpack(std::string_view bytes, torch::nn::Module* module);

}  // namespace lrun::detail
