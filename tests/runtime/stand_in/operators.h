#pragma once

namespace lrun::test::stand_in {

/// In the place of libtorch_cuda.so: LibTorch's own allocator, and tensors on its devices that can be made, filled and
/// copied, in the caller's current stream as kernels do it. Everything else of LibTorch's is missing there.
///
/// A test that makes tensors calls this first.
void provide_operators();

}  // namespace lrun::test::stand_in
