#pragma once

#include <cstdint>
#include <string>

namespace lrun::detail {

/// \param loaded  the LibTorch that the loader found, as its aoti_torch_abi_version() says it: a byte each for major,
///                minor and patch version, highest first; 0: it is older than that function.
/// \return the error and the hint, empty where it is the version that this library was built with.
std::string wrong_libtorch_text(std::uint64_t loaded);

}  // namespace lrun::detail
