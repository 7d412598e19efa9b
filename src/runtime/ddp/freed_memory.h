#pragma once

namespace lrun::detail {

/// From now on memory that is freed stays with this process, in pieces of up to 32 MiB: of the main thread up to 1 GiB,
/// of any other up to 64 MiB a thread (a heap of glibc; of what goes beyond, whole heaps may still be given back).
/// glibc would give the end of a thread's heap back to the kernel, and a training step that runs in several threads
/// would get all its activations anew, page by page, in every step. Does nothing where the environment sets glibc's
/// malloc (MALLOC_TRIM_THRESHOLD_, MALLOC_MMAP_THRESHOLD_, GLIBC_TUNABLES), and nothing to other allocators.
/// Threads: any.
void keep_freed_memory();

}  // namespace lrun::detail
