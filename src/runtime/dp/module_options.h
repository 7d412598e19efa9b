#pragma once

namespace torch::nn {
class Module;
}

namespace lrun::detail {

/// Gives `copy` the options of `module`. \pre both are of the class that it was found for.
using OptionsCopier = void (*)(const torch::nn::Module& module, torch::nn::Module& copy);

/// For a module of torch's that has options (Dropout, BatchNorm2d, Conv2d, …) or of a class derived from one; null for
/// all others.
OptionsCopier options_copier(const torch::nn::Module& module);

}  // namespace lrun::detail
