#pragma once

#include <cstddef>
#include <cstdint>

namespace lrun::detail {

/// All of `size` bytes at `offset` of a file. \return 0, or the error as errno (ENODATA: the file ends before).
int write_at(int fd, const void* data, std::size_t size, std::uint64_t offset);
int read_at(int fd, void* data, std::size_t size, std::uint64_t offset);

}  // namespace lrun::detail
